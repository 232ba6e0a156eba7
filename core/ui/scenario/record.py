"""The scenario of a visit: one record in the session, in step with the widgets and with the address.

The address is the visitor's: it can be opened, edited, and gone back to. A page calls ``adopt_link``
before it draws, so that the record follows the address; every change of a widget goes through
``changed``, ``change`` or ``use``, so that the address follows the record.

An address without a scenario means the one with which the visitor arrived at that page. So a page
opened from the navigation keeps the scenario, and Back finds the earlier one.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from core.analytic.datasheet import machine_from
from core.analytic.machine import Machine
from core.analytic.planner_room import Case
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import accelerators
from core.catalog.custom import Own
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue
from core.catalog.scenario import KEYS, LIMITS, VERSION, Scenario, decode, encode, on_chips
from core.ui.scenario import address as address_bar
from core.ui.scenario import words

#: Whether the bar is open to edit; it closes where another page is opened.
BAR_OPEN: Final = "scenario_bar_open"
_RECORD: Final = "scenario"
_OWN: Final = "scenario_own"
_NOTES: Final = "scenario_notes"
_SAID: Final = "scenario_said"
_CHIPS: Final = "scenario_chips_set"
_SEEN: Final = "scenario_link_seen"
_PAGE: Final = "scenario_page"
_COMES_IN: Final = "scenario_comes_in"
_ARRIVED: Final = "scenario_arrived"
_FIELDS: Final = tuple(field.name for field in fields(Scenario))
_LINK_KEYS: Final = frozenset({"v", *KEYS.values()})
_MOST_NOTES: Final = 6


# --- The record -----------------------------------------------------------------------------------


def current() -> Scenario:
    """The scenario as it stands; its values are within their limits."""
    record: Scenario = st.session_state.setdefault(_RECORD, Scenario())
    return record


def notes() -> tuple[str, ...]:
    """What had to be repaired in the address that was opened; empty once something was changed."""
    return tuple(st.session_state.get(_NOTES, ()))


def said() -> str:
    """What the last change brought with it; empty where that was nothing."""
    return str(st.session_state.get(_SAID, ""))


def own() -> Own:
    """The models and chips that the visitor brought."""
    brought: Own = st.session_state.setdefault(_OWN, Own())
    return brought


def keep(brought: Own) -> None:
    """Replace what the visitor brought; a scenario that used something removed goes to the default."""
    st.session_state[_OWN] = brought
    now, default = current(), Scenario()
    model = now.model if now.model in models() else default.model
    chip = now.accelerator if now.accelerator in chips() else default.accelerator
    if (model, chip) != (now.model, now.accelerator):
        change(model=model, accelerator=chip)


def models() -> dict[str, ModelSpec]:
    """Every model that can be chosen: the visitor's own first."""
    return {**{key: model.spec for key, model in own().models.items()}, **catalogue()}


def chips() -> dict[str, Accelerator]:
    """Every chip that can be chosen: the visitor's own first."""
    return {**{key: chip.accelerator for key, chip in own().chips.items()}, **accelerators()}


def machines() -> dict[str, Machine]:
    """Every chip as a machine, made from its data sheet."""
    return {
        **{key: machine_from(chip.accelerator) for key, chip in own().chips.items()},
        **catalogue_machines(),
    }


@cache
def catalogue_machines() -> dict[str, Machine]:
    """The catalogue's chips as machines; the same for every visitor."""
    return {key: machine_from(chip) for key, chip in accelerators().items()}


def case_of(scenario: Scenario) -> Case:
    """A scenario with what its names stand for; a name that is gone means the default's."""
    default, known, chips_known = Scenario(), models(), machines()
    model = known.get(scenario.model) or known[default.model]
    machine = chips_known.get(scenario.accelerator) or chips_known[default.accelerator]
    return Case(replace(scenario, model=model.id, accelerator=machine.id), model, machine)


# --- The widgets ----------------------------------------------------------------------------------


def widget_key(name: str) -> str:
    """The key of the widget that shows one field; the widget starts from the record."""
    key = f"scenario_{name}"
    if key not in st.session_state:
        st.session_state[key] = getattr(current(), name)
    return key


def changed(name: str) -> None:
    """The widget of a field changed. Meant as ``on_change``, with the field's name."""
    change(**{name: st.session_state.get(f"scenario_{name}")})


def change(**values: object) -> None:
    """Set fields of the scenario; what a field cannot be is left as it was. Meant as a callback."""
    use(replace(current(), **{name: value for name, value in values.items() if _can_be(name, value)}))  # type: ignore[arg-type]


def split(**degrees: object) -> None:
    """Set degrees of the split. Meant as a callback.

    The chips are those that were set last by hand or by a link, where the split divides them; else they are
    those of one replica, and that is said.
    """
    before = current()
    chips = int(st.session_state.get(_CHIPS, before.count))
    valid = {name: value for name, value in degrees.items() if _can_be(name, value)}
    use(on_chips(replace(before, **valid), chips))  # type: ignore[arg-type]
    st.session_state[_CHIPS] = chips
    if current().count != before.count:
        st.session_state[_SAID] = words.chips_sentence(chips, current())


def use(scenario: Scenario) -> None:
    """Replace the scenario, and put the widgets and the address in step. Meant as a callback."""
    st.session_state[_NOTES], st.session_state[_SAID] = (), ""
    _replace(scenario)
    _write_address()


def _can_be(name: str, value: object) -> bool:
    """A browser's limits can be passed by; the record's cannot."""
    if name in LIMITS:
        low, high = LIMITS[name]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return isinstance(value, str) and not decode({KEYS[name]: value}, models(), chips()).notes


def _replace(scenario: Scenario) -> None:
    if scenario.count != current().count or _CHIPS not in st.session_state:
        st.session_state[_CHIPS] = scenario.count
    st.session_state[_RECORD] = scenario
    for name in _FIELDS:
        st.session_state[f"scenario_{name}"] = getattr(scenario, name)


# --- The address ----------------------------------------------------------------------------------


def enter(page: str) -> None:
    """Notice that the visitor comes to a page; the app's frame calls it before every page."""
    if st.session_state.get(_PAGE) != page:
        st.session_state[_PAGE], st.session_state[_COMES_IN] = page, True
        st.session_state[BAR_OPEN], st.session_state[_SAID] = False, ""


def comes_in() -> bool:
    """Whether the visitor has just come to this page; until ``adopt_link`` was called."""
    return bool(st.session_state.get(_COMES_IN, False))


def adopt_link(page: str) -> None:
    """Bring the record and the address in step, before a page draws anything.

    Args:
        page: the page's stem.
    """
    params = _params()
    arrived: dict[str, Scenario] = st.session_state.setdefault(_ARRIVED, {})
    enter(page)
    comes_in = bool(st.session_state.pop(_COMES_IN, False))
    if params and (comes_in or params != st.session_state.get(_SEEN)):
        decoded = decode(params, models(), chips())
        st.session_state[_NOTES], st.session_state[_SAID] = decoded.notes[:_MOST_NOTES], ""
        _replace(decoded.scenario)
        st.session_state[_SEEN] = params
    elif comes_in:
        arrived[page], st.session_state[_SEEN] = current(), {}
        if current() != Scenario():
            address_bar.complete(_link())
    elif not params and st.session_state.get(_SEEN):
        _replace(arrived.get(page, Scenario()))
        st.session_state[_SEEN] = {}


def address() -> str:
    """The link to this page with this scenario and the page's own settings."""
    page = urlsplit(str(st.context.url or ""))
    query = urlencode({**_others(), **_link()})
    return urlunsplit(page._replace(path=page.path or "/", query=query, fragment=""))


def link_params() -> dict[str, str]:
    """The scenario as query parameters, for a link to another page."""
    return _link()


def _link() -> dict[str, str]:
    """Defaults are left out, but never the version: it says that this address names a scenario."""
    return {"v": VERSION, **encode(current())}


def _write_address() -> None:
    mine = _link()
    st.session_state[_SEEN] = mine
    address_bar.step(mine, _LINK_KEYS.__contains__)


def _params() -> dict[str, str]:
    return {name: value for name, value in st.query_params.items() if name in _LINK_KEYS}


def _others() -> dict[str, str]:
    return {name: value for name, value in st.query_params.items() if name not in _LINK_KEYS}
