"""What a prediction rests on: the prompt's tokens, the calibration, and how far to trust them."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab.calibration import Calibration
from core.lab.status import LabStatus
from core.ui import prose
from core.ui.lab import files, runs
from core.ui.lab.arithmetic import Case
from core.ui.lab.forecast import Forecast
from core.ui.lab.service import Lab, Visits

_WHY: Final = {
    "memory": "it waits for memory most",
    "compute": "it waits for arithmetic most",
    "overhead": "the fixed cost of each call weighs most",
}


def show(now: Forecast) -> None:
    """What the prediction says in one sentence, and the model's own notes."""
    if now.case is None:
        return
    tokens, counted = now.case.prediction.prompt_tokens, "" if now.counted else "about "
    limit = now.case.prediction.decode or now.case.prediction.prefill
    template = "" if now.case.request.raw else ", those of the chat template included"
    prose.paragraph(
        f"Your prompt has {counted}{tokens:,} tokens{template}. While it writes, {_WHY[limit.limit]}."
    )


def calibration(lab: Lab, visits: Visits, status: LabStatus, case: Case | None) -> None:
    """When and how this computer was measured, what makes that less certain, and a way to do it again."""
    known = status.calibration
    if known is None:
        if status.info.calibration_message:
            st.caption(status.info.calibration_message)
        return
    st.caption(" ".join([_when(known), *known.machine().notes, *(case.model.notes if case else ())]))
    st.button(
        "Calibrate again (about four minutes)",
        type="tertiary",
        icon=":material/refresh:",
        key="lab_calibrate",
        help="Measures this computer anew and in more detail. Predictions then use the new measurement.",
        disabled=runs.job() is not None,
        on_click=runs.start_calibration,
        args=(lab, visits, status.device),
    )


def _when(known: Calibration) -> str:
    depth = "a quick" if known.depth == "quick" else "a full"
    return (
        f"Predictions use {depth} calibration of this computer, {files.clock(known.measured_at)}; "
        f"its samples scatter by {known.spread:.0%}."
    )
