"""What a visit has run: its job now, the records of its runs, and a record loaded from a file.

All of it lives in the visitor's session; nothing is written to disk and nobody else can see it.
"""

from __future__ import annotations

import secrets
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab.job import JobSnapshot, JobState
from core.lab.record import RunRecord
from core.lab.request import RunRequest
from core.ui import visit_key
from core.ui.lab.service import Lab, OwnJob, Visits

#: Records kept in a session.
MOST_RUNS: Final = 8
_JOB: Final = "lab_job"
_RUNS: Final = "lab_runs"
_LOADED: Final = "lab_loaded"
_TROUBLE: Final = "lab_trouble"
_OWNER: Final = "lab_owner"


def owner() -> str:
    """The name under which this visit's jobs run; unguessable, and in no link."""
    name: str = st.session_state.setdefault(_OWNER, secrets.token_hex(16))
    return name


def job() -> OwnJob | None:
    """The visit's job that has not ended yet."""
    mine: OwnJob | None = st.session_state.get(_JOB)
    return mine


def start(lab: Lab, visits: Visits, request: RunRequest) -> None:
    """Hand a request to the lab; a refusal becomes the visit's trouble, as a sentence."""
    clear_trouble()
    show_loaded(None)
    try:
        mine = OwnJob(lab.submit_run(request, owner()), owner(), request)
    except UserError as refusal:
        st.session_state[_TROUBLE] = str(refusal)
        return
    st.session_state[_JOB] = mine
    visits.remember(visit_key.known_key() or owner(), mine)


def cancel(lab: Lab, job_id: str) -> None:
    """Stop the job; its end is seen by the next look. Meant as a callback."""
    try:
        lab.cancel(job_id)
    except UserError as gone:  # it ended and was forgotten in the same moment
        lost(str(gone))


def can_reattach(lab: Lab, visits: Visits, key: str) -> bool:
    """Whether this tab started a job before it was reloaded, and the lab still knows it."""
    mine = visits.job_of(key)
    if mine is None or job() is not None or records() or trouble():
        return False
    try:
        lab.snapshot(mine.id)
    except UserError:  # it ended long ago and is forgotten; there is nothing to tell
        return False
    return True


def reattach(visits: Visits, key: str) -> RunRequest | None:
    """Take the tab's job up again and return what it was asked for."""
    mine = visits.job_of(key)
    if mine is None:
        return None
    st.session_state[_OWNER], st.session_state[_JOB] = mine.owner, mine
    return mine.request


def finish(snapshot: JobSnapshot) -> None:
    """Put an ended job away: its record among the runs, or the sentence that says why there is none."""
    st.session_state.pop(_JOB, None)
    if snapshot.state is not JobState.DONE:
        st.session_state[_TROUBLE] = snapshot.message
        return
    try:
        add(RunRecord.from_json(snapshot.result))
    except UserError as fault:
        st.session_state[_TROUBLE] = str(fault)


def lost(sentence: str) -> None:
    """The job is not known any more, for example after a restart of the server."""
    st.session_state.pop(_JOB, None)
    st.session_state[_TROUBLE] = sentence


def add(record: RunRecord) -> None:
    """Keep a record, the newest last; the oldest go."""
    st.session_state[_RUNS] = [*records(), record][-MOST_RUNS:]


def records() -> list[RunRecord]:
    """The runs of this visit, the newest last."""
    return list(st.session_state.get(_RUNS, []))


def of(request: RunRequest) -> RunRecord | None:
    """The newest run with exactly these settings."""
    return next((record for record in reversed(records()) if record.request == request), None)


def trouble() -> str:
    """Why the last run gave no result; empty where it did."""
    return str(st.session_state.get(_TROUBLE, ""))


def clear_trouble() -> None:
    """The visitor has moved on."""
    st.session_state.pop(_TROUBLE, None)


def loaded() -> RunRecord | None:
    """The record that was loaded from a file and is shown now."""
    record: RunRecord | None = st.session_state.get(_LOADED)
    return record


def show_loaded(record: RunRecord | None) -> None:
    """Show a record from a file, or with None go back to this visit's own runs."""
    st.session_state[_LOADED] = record
