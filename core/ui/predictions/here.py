"""This machine: the sweep that was made on it, each cell predicted before it ran."""

from __future__ import annotations

import streamlit as st

from core.errors import UserError
from core.lab.experiment import SWEEP
from core.lab.sweep_record import SweepRecord
from core.ui import prose
from core.ui.lab import runs
from core.ui.lab.sweep import server
from core.ui.plain import plain
from core.ui.predictions import sweeps
from core.ui.scenario import record as scenario


def show() -> None:
    """Draw the section."""
    st.header("This machine", anchor=False)
    made = runs.results(SWEEP)
    if made:
        _draw(made[-1])
        return
    if server.draw(sweeps.draw, "predictions_server"):
        _lab_link()
        return
    prose.paragraph(
        "No sweep has been made in this visit yet. A sweep predicts many runs of the engine, then does them, "
        "on whatever machine the app runs on. Nothing that it measures is used for its predictions. "
        "On the command line, python -m core bench makes one."
    )
    _lab_link()


def _lab_link() -> None:
    st.page_link(
        "pages/lab.py",
        label="Predict and run in the engine lab",
        icon=":material/science:",
        query_params=scenario.link_params(),
    )


def _draw(result: object) -> None:
    """The sweep that this visit made last."""
    try:
        record = SweepRecord.from_json(result)
    except UserError as fault:
        st.error(plain(str(fault)))
        return
    sweeps.draw(record, "predictions_here")
