"""The parts of the lab: a row to choose from, in step with the address, and the chosen part below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import streamlit as st

from core.ui import source
from core.ui.figures.cache_over_time import cache_over_time
from core.ui.figures.page_tables import page_tables
from core.ui.figures.request_gantt import request_gantt
from core.ui.lab import endpoint, page, reattaching
from core.ui.lab.many import page as many
from core.ui.lab.many.numbers import badges
from core.ui.lab.many.shown import predicted
from core.ui.lab.service import Lab, Visits
from core.ui.lab.sweep import page as sweep

PARAMETER: Final = "part"
_ONE: Final = "one"
_KEY: Final = "lab_part"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the lab.

    Attributes:
        name: on the page. words: what it is for.
        show: draws it. is_offered: whether this visitor may have it.
    """

    name: str
    words: str
    show: Callable[[Lab, Visits], None]
    is_offered: Callable[[], bool] = lambda: True


def _many(lab: Lab, _: Visits) -> None:
    many.show(lab)
    source.show(
        (
            ("predicted times", predicted),
            ("requests by time", request_gantt),
            ("the cache over time", cache_over_time),
            ("block tables", page_tables),
            ("what is equal", badges),
        ),
        key="serve",
    )


#: By their names in the address, which leaves the first one out.
_PARTS: Final[Mapping[str, Part]] = {
    _ONE: Part(
        "One answer",
        "A language model writes one token (a piece of a word) at a time. Here stands how fast it "
        "**should** be, by arithmetic; press Run and see how fast it **is**. Prompts are not logged. SmolLM2 "
        "is tiny (135 million parameters): it writes fluently and says false things.",
        page.show,
    ),
    "many": Part(
        "Many requests",
        "A server answers many at once. Here stands what a trace of requests **would** do, step by step; "
        "press Run and the engine serves it. Prompts are random tokens.",
        _many,
    ),
    "sweep": Part(
        "Sweep",
        "Many settings, one after the other. Each combination, a cell, is predicted, then run, and the two "
        "stand side by side. What a cell measures is used for no prediction.",
        sweep.show,
    ),
    "own": Part(
        "Your own server",
        "Name a server of yours that speaks the OpenAI API, and see how fast it answers under load, beside "
        "what the arithmetic predicts.",
        lambda lab, visits: endpoint.show(),
        lambda: endpoint.is_allowed(),  # noqa: PLW0108 - looked up at each call
    ),
}


def show(lab: Lab, visits: Visits) -> None:
    """Draw the row and the part that the address names."""
    reattaching.take_up(visits)
    offered = {name: part for name, part in _PARTS.items() if part.is_offered()}
    part = _chosen(offered)
    if st.query_params.get(PARAMETER) in _PARTS.keys() - offered.keys():
        endpoint.show_elsewhere()
    st.markdown(part.words)
    st.fragment(reattaching.ask, key="lab_visit")(lab, visits)
    part.show(lab, visits)


def _chosen(offered: Mapping[str, Part]) -> Part:
    """The part that the address names, the first where it names none that is here."""
    asked = st.query_params.get(PARAMETER, _ONE)
    # The address owns the choice; the widget starts from it at every run.
    st.session_state[_KEY] = asked if asked in offered else _ONE
    chosen = st.segmented_control(
        "Part of the lab",
        list(offered),
        format_func=lambda name: offered[name].name,
        required=True,
        key=_KEY,
        label_visibility="collapsed",
        on_change=_write,
    )
    return offered.get(str(chosen), offered[_ONE])


def _write() -> None:
    """Put the chosen part into the address; the first is left out."""
    part = str(st.session_state.get(_KEY))
    if part in _PARTS and part != _ONE:
        st.query_params[PARAMETER] = part
    else:
        st.query_params.pop(PARAMETER, None)
