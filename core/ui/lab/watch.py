"""The run as it happens: where it stands, the text as it streams, and a way to stop it.

While something is under way this part alone is redrawn on a timer, so that watching costs the
measured machine little. It never holds another fragment, and asks for a full rerun only as its last
act.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab import sentences
from core.lab.job import JobSnapshot, JobState
from core.lab.status import LabStatus
from core.ui.lab import runs
from core.ui.lab.service import Lab, OwnJob
from core.ui.state_card import state_card
from core.units import format_seconds, significant

#: Seconds between two looks: at one's own streaming text, and while waiting for others.
STREAMING_S: Final = 0.35
WAITING_S: Final = 2.0
_TEXT_HEIGHT: Final = 150
_SINCE: Final = "lab_phase_since"
#: Before this, and below this share, nothing is said of how long something takes.
_SOON_S: Final = 2.0
_ENOUGH: Final = 0.1
#: An estimate below this has run out.
_SOONEST_S: Final = 1.0
#: Nothing can run now, and that changes by itself.
_UNREADY: Final = {"starting", "warming", "restarting", "failed"}
#: It will be able to, without anybody's help.
SOON: Final = _UNREADY - {"failed"}


def period_s(lab: Lab, status: LabStatus) -> float | None:
    """How often to look again; None where nothing is under way."""
    job = runs.job()
    if job is not None:
        return STREAMING_S if _is_next(lab, job.id) else WAITING_S
    return WAITING_S if status.state in _UNREADY else None


def watch(lab: Lab, device: str, period: float, *, writes: bool = True) -> None:
    """Draw what is under way, again and again, until it ends or its pace changes.

    Args:
        lab: where it runs.
        device: on which of its devices.
        period: seconds between two looks.
        writes: what can be run here writes a text, for which there is room.
    """
    if runs.job() is None:
        preparing(lab.status(device))
        if writes:
            _streaming("")
    else:
        _own_job(lab, device)
    # Last of all, so that every widget of this fragment has been drawn before it starts anew.
    if period_s(lab, lab.status(device)) != period:
        st.rerun()


def answer(text: str, hint: str) -> None:
    """The model's whole text in a box of fixed height; without text, a hint."""
    with st.container(height=_TEXT_HEIGHT):
        _text(text, hint)


def _streaming(text: str) -> None:
    """The text so far, scrolled to its end."""
    with st.container(height=_TEXT_HEIGHT, autoscroll=True):
        _text(text, "The answer appears here.")


def _text(text: str, hint: str) -> None:
    body = escape(text) if text else f'<span style="opacity:.75">{escape(hint)}</span>'
    st.html(
        '<div role="log" aria-label="Answer" style="white-space:pre-wrap;overflow-wrap:anywhere">'
        f"{body}</div>"
    )


def _is_next(lab: Lab, job_id: str) -> bool:
    try:
        snapshot = lab.snapshot(job_id)
    except UserError:  # told by the next look, as a sentence
        return True
    return snapshot.state is not JobState.QUEUED or snapshot.position == 0


def _own_job(lab: Lab, device: str) -> None:
    job, snapshot = runs.job(), look(lab)
    if job is None or snapshot is None:
        return
    if snapshot.state.is_final:
        done = "Done." if job.experiment is not None else "Done. Comparing with the prediction."
        state_card("measuring", done, 1.0)
    elif snapshot.state is JobState.QUEUED:
        queued(snapshot, lab.status(device))
    else:
        said = _progress(snapshot, job)
        if job.request is None or not snapshot.steps:
            said = f"{said} {so_far((job.id, snapshot.phase), snapshot.fraction)}"
        state_card("measuring", said, snapshot.fraction)
    if job.experiment is None:
        _streaming(snapshot.text)


def look(lab: Lab) -> JobSnapshot | None:
    """How the visit's job stands, put away where it has ended; None where there is none to look at."""
    job = runs.job()
    if job is None:
        return None
    lab.touch(job.id)
    try:
        snapshot = lab.snapshot(job.id)
    except UserError as gone:
        runs.lost(str(gone))
        return None
    if snapshot.state.is_final:
        runs.finish(snapshot)
    return snapshot


def queued(snapshot: JobSnapshot, status: LabStatus) -> None:
    """Whom or what a job waits for."""
    if snapshot.position == 0 and status.state in SOON:
        state_card("queued", f"You are next. {getting_ready(status)}", status.fraction)
    else:
        state_card("queued", _place(snapshot))


def is_preparing(status: LabStatus) -> bool:
    """Nothing is predicted yet, and that changes without anybody's help."""
    return status.calibration is None and status.state in SOON


def await_ready(lab: Lab, device: str, draw: Callable[[LabStatus], None]) -> None:
    """A fragment that draws where the measuring process stands, until it is ready."""
    status = lab.status(device)
    if not is_preparing(status):
        st.rerun()
    draw(status)


def preparing(status: LabStatus) -> None:
    """A card with where the measuring process stands."""
    if status.state == "failed":
        state_card("failed", sentences.cannot_start(status.message))
        return
    state_card("starting", getting_ready(status), status.fraction)


def getting_ready(status: LabStatus) -> str:
    """Why nothing can run yet, what goes on, and how long it takes."""
    words = {
        "starting": "The measuring process starts; that takes a few seconds.",
        "restarting": "The measuring process ended and starts again.",
        "warming": "First the model is loaded and this computer is calibrated once, so that runs can be "
        f"predicted; that takes from half a minute to two. Now: {status.phase or 'loading'}. "
        f"{so_far(('', status.phase), status.fraction)}",
    }
    return words.get(status.state, "One moment.")


def so_far(what: tuple[str, str], fraction: float | None) -> str:
    """How long something has been under way, and how long it may still take, where that can be said.

    Args:
        what: the job and its phase; another one starts the clock anew.
        fraction: how much of it is done; None where that is unknown.
    """
    known: tuple[tuple[str, str], float] | None = st.session_state.get(_SINCE)
    if known is None or known[0] != what:
        known = (what, time.monotonic())
        st.session_state[_SINCE] = known
    passed_s = time.monotonic() - known[1]
    if passed_s < _SOON_S:
        return ""
    said = f"It has taken {passed_s:,.0f} s so far"
    if fraction is None or fraction < _ENOUGH:
        return f"{said}."
    return f"{said}, and needs about {max(passed_s * (1 / fraction - 1), 1.0):,.0f} s more."


def _place(snapshot: JobSnapshot) -> str:
    if snapshot.position == 0:
        return "You are next; it starts as soon as the measuring process is ready."
    wait = snapshot.estimated_wait_s
    if wait is None:
        about = ""
    elif wait < _SOONEST_S:
        about = ". It takes longer than such jobs took before"
    else:
        about = f", about {format_seconds(wait)} to go"
    others = "1 job is" if snapshot.position == 1 else f"{snapshot.position} jobs are"
    return f"{others} ahead of you{about}."


def _progress(snapshot: JobSnapshot, job: OwnJob) -> str:
    if job.experiment is not None:
        return f"{(snapshot.phase or 'starting').capitalize()}."
    if job.request is None:
        return f"This computer's speed is measured anew. Now: {snapshot.phase or 'starting'}."
    most = job.request.max_tokens
    if not snapshot.steps:
        return f"{(snapshot.phase or 'starting').capitalize()}."
    written = len(snapshot.steps)
    recent = [step.host_s for step in snapshot.steps[-8:] if step.kind == "decode"]
    rate = ""
    if recent and sum(recent) > 0:
        rate = f", of late {significant(len(recent) / sum(recent))} in a second"
    if snapshot.phase == "profiling" or written >= most:
        return f"{written} tokens written{rate}. Now measuring again for the spread, operator by operator."
    return f"{written} of up to {most} tokens written{rate}."
