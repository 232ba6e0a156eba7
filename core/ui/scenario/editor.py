"""What the opened scenario bar holds: the fields, and the ways to bring a model or a chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import streamlit as st

from core.catalog.formats import STORAGE_FORMATS
from core.catalog.scenario import LIMITS
from core.ui.plain import plain
from core.ui.scenario import brought, record, words

_WEIGHTS: Final = tuple(entry.id for entry in STORAGE_FORMATS.values() if "weights" in entry.uses)
_KV: Final = tuple(entry.id for entry in STORAGE_FORMATS.values() if "kv" in entry.uses)
#: The largest step of a slider; the number field takes more.
_LARGEST_STEP: Final = {"batch": 4096, "input_tokens": 131_072, "output_tokens": 16_384}


def draw() -> None:
    """Draw the part that is chosen: the fields, or what can be brought."""
    part = st.segmented_control(
        "What to change",
        list(_PARTS),
        default="Scenario",
        required=True,
        key="scenario_part",
        label_visibility="collapsed",
    )
    _PARTS.get(str(part), _fields)()


def steps(name: str, now: int) -> list[int]:
    """The powers of two up to a sensible end, with today's value among them.

    >>> steps("batch", 3)[:4]
    [1, 2, 3, 4]
    """
    end = _LARGEST_STEP[name]
    return sorted({now, *(2**power for power in range(end.bit_length()))})


def _fields() -> None:
    models, chips = record.models(), record.chips()
    model, chip = st.columns(2)
    with model:
        _choice("model", list(models), lambda key: words.model_label(models[key]))
    with chip:
        _choice("accelerator", list(chips), lambda key: words.chip_label(chips[key]))
    formats = st.columns(3)
    with formats[0]:
        _choice("weights", _WEIGHTS, words.format_label, "contains")
    with formats[1]:
        _choice("kv", _KV, words.format_label, "contains")
    with formats[2]:
        _number("count")
    for column, name in zip(st.columns(3), ("batch", "input_tokens", "output_tokens"), strict=True):
        with column:
            _number(name)
    for column, name in zip(st.columns(3), ("tp", "pp", "ep"), strict=True):
        with column:
            _number(name, _degree_changed)


def _degree_changed(name: str) -> None:
    """A replica over more chips may take more of them than there are; experts lie on those of a replica."""
    if name == "ep":
        record.changed(name)
    else:
        record.split(**{name: st.session_state.get(record.widget_key(name))})


def _choice(
    name: str,
    options: Sequence[str],
    label: Callable[[str], str],
    search: Literal["contains", "fuzzy"] = "fuzzy",
) -> None:
    """A list to search: "contains" keeps the order of the options, "fuzzy" takes other spellings."""
    st.selectbox(
        words.LABELS[name],
        options,
        key=record.widget_key(name),
        format_func=label,
        filter_mode=search,
        help=words.HELP[name],
        on_change=record.changed,
        args=(name,),
    )


def _number(name: str, on_change: Callable[[str], None] = record.changed) -> None:
    low, high = LIMITS[name]
    st.number_input(
        words.LABELS[name],
        low,
        high,
        value=None,  # an emptied field then says nothing, and the scenario stays
        step=1,
        key=record.widget_key(name),
        help=f"{words.HELP[name]} From {low:,} to {high:,}.",
        on_change=on_change,
        args=(name,),
    )


def _kept() -> None:
    brought.files()
    for key in record.own().keys:
        name = record.models()[key].name if key in record.models() else record.chips()[key].name
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(name))
            st.button("Remove", key=f"scenario_remove_{key}", on_click=brought.remove, args=(key,))


_PARTS: Final[dict[str, Callable[[], None]]] = {
    "Scenario": _fields,
    "Own model": brought.model_form,
    "Own chip": brought.chip_form,
    "Save and load": _kept,
}
