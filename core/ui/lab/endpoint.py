"""Your own server, measured from the page: for the owner of this computer, at this computer.

The measurement runs in a thread of its own and at most two minutes; the page looks at it twice a second.
A server that serves others never shows the controls, and neither does a browser that sits elsewhere.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab.endpoint import background
from core.lab.endpoint.background import Run
from core.lab.endpoint.notes import is_blurred
from core.lab.endpoint.prediction import EndpointPrediction
from core.lab.endpoint.record import EndpointRecord
from core.lab.endpoint.request import EndpointRequest
from core.lab.hosting import is_at_this_computer, is_hosted
from core.ui.lab import endpoint_answer, endpoint_controls, files
from core.ui.state_card import state_card
from core.units import format_seconds

_RUN: Final = "endpoint_run"
_RECORD: Final = "endpoint_record"
_TROUBLE: Final = "endpoint_trouble"
_STARTED: Final = "endpoint_started"
_LOOK_S: Final = 0.5
_ELSEWHERE: Final = (
    "A server of your own is measured from your own computer only: start the app there with `make run` and "
    "open `http://localhost:8501`. The command line does the same anywhere:"
)
_ENDED: Final = {
    "complete": "",
    "stopped": "You stopped the run. ",
    "out of time": f"The run's {format_seconds(endpoint_controls.RUN_S)} were over. ",
}
_COMMAND: Final = (
    "python -m core endpoint http://localhost:8000/v1 --concurrency 1 4 "
    "--model-id llama-3.1-8b --accelerator l4"
)


def is_allowed() -> bool:
    """Whether this visit may have this computer call a server; in doubt it may not."""
    # Streamlit has no address for a connection from this computer, and none where it does not know; then
    # there are no headers either, and the answer is no.
    address = st.context.ip_address or "127.0.0.1"
    return not is_hosted() and is_at_this_computer(address, dict(st.context.headers))


def show() -> None:
    """Draw the part: controls, where it stands, and the figures."""
    if not is_allowed():
        show_elsewhere()
        return
    st.fragment(_part, key="endpoint", run_every=_LOOK_S if _run() else None)()


def show_elsewhere() -> None:
    """Say where a server of one's own is measured, to a visitor who may not have it done here."""
    st.markdown(_ELSEWHERE)
    st.code(_COMMAND, language=None, wrap_lines=True)


def _run() -> Run | None:
    mine: Run | None = st.session_state.get(_RUN)
    return mine


def _part() -> None:
    run = _run()
    over = run is not None and run.snapshot().is_over
    if run is not None and over:
        _take(run)
    endpoint_controls.draw(locked=run is not None and not over)
    asked, predicted, problem = _asked()
    if problem:
        st.error(problem)
    _buttons(stuck=bool(problem))
    _state()
    endpoint_answer.show(asked, predicted, _record())
    # Last of all, so that every widget has been drawn: a run has begun or ended, and with it the timer.
    if over or st.session_state.pop(_STARTED, False):
        st.rerun()


def _record() -> EndpointRecord | None:
    record: EndpointRecord | None = st.session_state.get(_RECORD)
    return record


def _asked() -> tuple[EndpointRequest, EndpointPrediction | None, str]:
    """The request, its prediction, and what is wrong with one of them."""
    asked = endpoint_controls.request()
    try:
        asked.validate()
        return asked, endpoint_controls.prediction(asked), ""
    except UserError as mistake:
        return asked, None, str(mistake)


def _buttons(*, stuck: bool) -> None:
    run = _run()
    with st.container(horizontal=True):
        st.button(
            "Measure",
            type="primary",
            icon=":material/play_arrow:",
            key="endpoint_start",
            disabled=stuck or run is not None,
            on_click=_start,
        )
        st.button(
            "Stop",
            icon=":material/stop:",
            key="endpoint_stop",
            disabled=run is None,
            on_click=_stop,
        )


def _start() -> None:
    """Predict, then begin. Meant as a callback."""
    key = endpoint_controls.take_key()
    st.session_state.pop(_TROUBLE, None)
    asked, predicted, problem = _asked()
    if problem:
        st.session_state[_TROUBLE] = problem
        return
    try:
        st.session_state[_RUN] = background.start(asked, key, predicted)
        st.session_state[_STARTED] = True
    except UserError as refusal:
        st.session_state[_TROUBLE] = str(refusal)


def _stop() -> None:
    if (run := _run()) is not None:
        run.cancel()


def _take(run: Run) -> None:
    """Keep what a run came to; an earlier record stays where there is none."""
    found = run.snapshot()
    st.session_state[_RUN] = None
    if found.record is not None:
        st.session_state[_RECORD] = found.record
    st.session_state[_TROUBLE] = found.trouble


def _state() -> None:
    run, record = _run(), _record()
    trouble: str = st.session_state.get(_TROUBLE) or ""
    if run is not None:
        now = run.snapshot()
        state_card("measuring", f"{now.phase.capitalize()}. {run.request.host} is asked.", now.fraction)
    elif trouble:
        kept = " The figures are those of the run before." if record is not None else ""
        state_card("failed", trouble + kept)
    elif record is not None:
        said = _ENDED[record.ended] + f"{record.answered} of {record.asked} requests were answered."
        state_card("noisy" if is_blurred(record) else "measured", f"{files.clock(record.created_at)}. {said}")
    else:
        most = format_seconds(endpoint_controls.RUN_S)
        state_card("nothing", f"Press Measure. A run takes {most} at most, and what was answered is kept.")
