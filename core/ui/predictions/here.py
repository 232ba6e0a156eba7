"""This machine: the sweep that was made on it, each cell predicted before it ran."""

from __future__ import annotations

import streamlit as st

from core.lab.sweep_record import SweepRecord
from core.ui import prose
from core.ui.predictions import sweeps
from core.ui.scenario import record as scenario


def show() -> None:
    """Draw the section."""
    st.header("This machine", anchor=False)
    made = sweep()
    if made is not None:
        sweeps.draw(made, "predictions_here")
        return
    prose.paragraph(
        "No sweep has been made here yet. A sweep predicts many runs of the engine, then does them, on "
        "whatever machine the app runs on; nothing of what it measures is used for its predictions. "
        "python -m core bench makes one, too."
    )
    st.page_link(
        "pages/lab.py",
        label="Predict and run in the engine lab",
        icon=":material/science:",
        query_params=scenario.link_params(),
    )


def sweep() -> SweepRecord | None:
    """The sweep that this visit made last, else the one that this server published; None without one."""
    return None
