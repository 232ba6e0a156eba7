"""What a token costs in money and energy, with a price that has a date and can be replaced.

Price and load are the visitor's own: they stay for the visit, a price with its chip, and are in no link.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.analytic.cost import PRICE_USD, HourlyPrice
from core.analytic.plan_value import PlanValue, value_of
from core.errors import UserError
from core.ui import number_tiles, print_view, prose, worked_number
from core.ui.number_tiles import Tile
from core.ui.plain import plain
from core.ui.planner.found import Found
from core.ui.planner.money_arithmetic import NAMES, worked
from core.units import significant

_OPEN: Final = "planner_money_open"
_LOAD: Final = "planner_load"
_LOADS: Final = tuple(range(10, 101, 10))
_MOST_USD: Final = 10_000.0
_CONTROL_PX: Final = 320


def draw(found: Found) -> None:
    """Draw the tiles, what they rest on, and the controls; nothing where the plan has no times."""
    if found.plan.ttft_s is None:
        return
    load = _load()
    worth = value(found, own_price(found.chip.id), load)
    st.header("What does a token cost?", anchor=False)
    number_tiles.show(
        tiles(worth),
        "Cost and energy; each opens its arithmetic",
        _opened(),
        key="planner_money",
        on_choose=_choose,
    )
    _arithmetic(found, worth, load)
    prose.small(" ".join(note for note in worth.notes if note.startswith(("Cost", "Energy", "No", "Nobody"))))
    if not print_view.is_on():
        _controls(found, worth)


def value(found: Found, price: HourlyPrice | None, load: float) -> PlanValue:
    """The plan's worth at a price and a load.

    Args:
        found: the plan.
        price: in place of the data sheet's; None for the list price.
        load: share of the paid time that is used, above 0 and at most 1.
    """
    case = found.case
    return value_of(found.plan, case.scenario, case.model, case.machine, found.chip, price=price, load=load)


def tiles(worth: PlanValue) -> tuple[Tile, ...]:
    """Four numbers; what is not known is unknown."""
    cost, energy = worth.cost, worth.energy
    dollars: tuple[float | None, ...] = (
        (None, None, None)
        if cost is None
        else (float(cost.input_usd), float(cost.output_usd), float(cost.request_usd))
    )
    meanings = ("a million tokens read", "a million tokens written", "one request")
    money = [
        Tile(name, "unknown" if usd is None else f"${significant(usd)}", meaning)
        for name, usd, meaning in zip(NAMES, dollars, meanings, strict=False)
    ]
    joules = "unknown" if energy is None else f"{significant(float(energy.output_j))} J"
    return (*money, Tile("Energy", joules, "for each token written"))


def typed_price(typed: object) -> HourlyPrice | None:
    """A price that the browser sent; None where it cannot be one: its limits are only what it offered.

    >>> typed_price(2.5).usd, typed_price(-1.0), typed_price("much")
    (2.5, None, None)
    """
    if not isinstance(typed, int | float) or not PRICE_USD[0] <= typed <= _MOST_USD:
        return None
    return HourlyPrice(float(typed))


def own_price(chip: str) -> HourlyPrice | None:
    """The price that the visitor typed for a chip, by its id; None where there is none, or no price."""
    return typed_price(st.session_state.get(_price_key(chip)))


def _price_key(chip: str) -> str:
    return f"planner_price_{chip}"


def _load() -> float:
    percent = st.session_state.get(_LOAD, 100)
    return percent / 100 if percent in _LOADS else 1.0


def _controls(found: Found, worth: PlanValue) -> None:
    with st.container(horizontal=True):
        st.number_input(
            "Dollars an hour for a chip",
            0.001,
            _MOST_USD,
            value=None,
            step=0.1,
            format="%.3g",
            placeholder="type one in" if worth.price is None else f"{worth.price.usd:.3g}",
            key=_price_key(found.chip.id),
            help="In place of the list price. It stays for this visit and is in no link.",
            persist_state="session",
            width=_CONTROL_PX,
        )
        st.select_slider(
            "Busy share",
            _LOADS,
            value=100,
            format_func=lambda percent: f"{percent} %",
            key=_LOAD,
            help="Of the hours that are paid for, those in which the batch runs.",
            persist_state="session",
            width=_CONTROL_PX,
        )


def _opened() -> str:
    name = str(st.session_state.get(_OPEN, ""))
    return name if name in NAMES else ""


def _choose(name: str) -> None:
    st.session_state[_OPEN] = "" if st.session_state.get(_OPEN) == name else name


def _arithmetic(found: Found, worth: PlanValue, load: float) -> None:
    for name in NAMES if print_view.is_on() else filter(None, [_opened()]):
        with st.container(border=True):
            try:
                worked_number.show(worked(found, worth, load, name), key=f"planner_money_{name}")
            except UserError as gap:
                st.error(plain(str(gap)))
