"""The four controls: two limits, the load, and what to rank by."""

from __future__ import annotations

import math
from typing import Final

import streamlit as st

from core.analytic.search.ranking import MEASURES
from core.analytic.search.request import Wanted
from core.catalog.scenario import Scenario
from core.ui.find import link
from core.ui.find.words import MEASURE_NAMES

_MS: Final = 1e3
_WIDTH: Final = 160
_BY: Final = "find_by"
#: Label, step, what an empty field says, and help, of each number.
_FIELDS: Final = {
    "ttft_ms": (
        "TTFT at most, ms",
        100.0,
        "no limit",
        "Time to first token: from the request to the first token of its answer. Empty: no limit.",
    ),
    "tpot_ms": (
        "TPOT at most, ms",
        5.0,
        "no limit",
        "Time per output token: how long each token after the first takes. Empty: no limit.",
    ),
    "requests_per_s": (
        "Requests a second",
        1.0,
        "one replica",
        "How many arrive in all; as many replicas (copies of the model) as they need are counted and paid "
        "for. Empty: one replica that is always full.",
    ),
}


def draw() -> None:
    """Draw them; the link owns their values, the widgets start from it at every run."""
    asked = link.now()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, (label, step, empty, help_text) in _FIELDS.items():
            key, (low, high) = f"find_{name}", link.LIMITS[name]
            st.session_state[key] = getattr(asked, name)
            st.number_input(
                label,
                low,
                high,
                value=None,
                step=step,
                format="%g",
                placeholder=empty,
                key=key,
                help=help_text,
                width=_WIDTH,
                on_change=_changed,
                args=(name,),
            )
        st.session_state[_BY] = asked.by
        st.segmented_control(
            "Rank by",
            MEASURES,
            required=True,
            format_func=MEASURE_NAMES.__getitem__,
            key=_BY,
            on_change=_measure_changed,
        )


def wanted(scenario: Scenario) -> Wanted:
    """What is asked, with the scenario's tokens."""
    asked = link.now()
    return Wanted(
        scenario.input_tokens,
        scenario.output_tokens,
        math.inf if asked.ttft_ms is None else asked.ttft_ms / _MS,
        math.inf if asked.tpot_ms is None else asked.tpot_ms / _MS,
        asked.requests_per_s,
    )


def _changed(name: str) -> None:
    link.set_number(name, st.session_state.get(f"find_{name}"))


def _measure_changed() -> None:
    link.set_measure(st.session_state.get(_BY))
