"""The parts of the lab: a row to choose from, in step with the address, and the chosen part below it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.ui import source
from core.ui.figures.cache_over_time import cache_over_time
from core.ui.figures.page_tables import page_tables
from core.ui.figures.request_gantt import request_gantt
from core.ui.lab import page, reattaching
from core.ui.lab.many import page as many
from core.ui.lab.many.numbers import badges
from core.ui.lab.many.shown import predicted
from core.ui.lab.service import Lab, Visits

PARAMETER: Final = "part"
_ONE: Final = "one"
_KEY: Final = "lab_part"
#: Each part's name in the address, its words, and what it is for.
_PARTS: Final[dict[str, tuple[str, str]]] = {
    _ONE: (
        "One answer",
        "A language model writes one token (a piece of a word) at a time. Here stands how fast it "
        "**should** be, by arithmetic; press Run and see how fast it **is**. Prompts are not logged. SmolLM2 "
        "is tiny (135 million parameters): it writes fluently and says false things.",
    ),
    "many": (
        "Many requests",
        "A server answers many at once. Here stands what a trace of requests **would** do, step by step; "
        "press Run and the engine serves it. Prompts are random tokens.",
    ),
}
_MANY_SOURCES: Final = (
    ("predicted times", predicted),
    ("requests by time", request_gantt),
    ("the cache over time", cache_over_time),
    ("block tables", page_tables),
    ("what is equal", badges),
)


def show(lab: Lab, visits: Visits) -> None:
    """Draw the row and the part that the address names."""
    reattaching.take_up(visits)
    part = _chosen()
    st.markdown(_PARTS[part][1])
    st.fragment(reattaching.ask, key="lab_visit")(lab, visits)
    if part == "many":
        many.show(lab)
        source.show(_MANY_SOURCES, key="serve")
    else:
        page.show(lab, visits)


def _chosen() -> str:
    """The part that the address names, the first where it names none that is here."""
    asked = st.query_params.get(PARAMETER, _ONE)
    part = asked if asked in _PARTS else _ONE
    # The address owns the choice; the widget starts from it at every run.
    st.session_state[_KEY] = part
    st.segmented_control(
        "Part of the lab",
        list(_PARTS),
        format_func=lambda name: _PARTS[name][0],
        required=True,
        key=_KEY,
        label_visibility="collapsed",
        on_change=_write,
    )
    return part


def _write() -> None:
    """Put the chosen part into the address; the first is left out."""
    part = st.session_state.get(_KEY)
    if part in _PARTS and part != _ONE:
        st.query_params[PARAMETER] = part
    else:
        st.query_params.pop(PARAMETER, None)
