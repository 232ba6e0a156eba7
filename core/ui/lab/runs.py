"""What a visit has run: its job now, the records of its runs, and a record loaded from a file.

All of it lives in the visitor's session; nothing is written to disk and nobody else can see it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

import streamlit as st

from core.errors import UserError
from core.lab.experiment import SWEEP, Experiment
from core.lab.job import JobSnapshot, JobState
from core.lab.record import RunRecord
from core.lab.request import RunRequest
from core.lab.sweep_parts import gathered
from core.ui import visit_key
from core.ui.lab.service import Lab, OwnJob, Visits
from core.ui.lab.settings import LOADED

#: Records kept in a session.
MOST_RUNS: Final = 8
_JOB: Final = "lab_job"
_LAST_JOB: Final = "lab_last_job"
_RUNS: Final = "lab_runs"
_FILES: Final = "lab_files"
_TROUBLE: Final = "lab_trouble"
_RESULTS: Final = "lab_results"
_EXPERIMENT_TROUBLE: Final = "lab_experiment_trouble"
_OWNER: Final = "lab_owner"
_STARTED: Final = "lab_started"


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
    _start(visits, request, lambda: lab.submit_run(request, owner()))


def start_calibration(lab: Lab, visits: Visits, device: str) -> None:
    """Have this computer measured anew and in full. Meant as a callback."""
    _start(visits, None, lambda: lab.submit_full_calibration(owner(), device))


def start_experiment(lab: Lab, visits: Visits, experiment: Experiment, device: str = "cpu") -> None:
    """Hand an experiment to the lab. Meant as a callback."""

    def submit() -> str:
        return lab.submit_experiment(experiment.kind, experiment.payload, owner(), device)

    _start(visits, None, submit, experiment)


def _start(
    visits: Visits,
    request: RunRequest | None,
    submit: Callable[[], str],
    experiment: Experiment | None = None,
) -> None:
    clear_trouble()
    show_loaded(None)
    st.session_state[_STARTED] = True
    try:
        mine = OwnJob(submit(), owner(), request, experiment)
    except UserError as refusal:
        _set_trouble(str(refusal), request, experiment)
        return
    _take(mine)
    visits.remember(visit_key.known_key() or owner(), mine)


def _take(mine: OwnJob) -> None:
    st.session_state[_JOB], st.session_state[_LAST_JOB] = mine, mine.id


def just_started() -> bool:
    """Whether a job was asked for in this very run; true once."""
    return bool(st.session_state.pop(_STARTED, False))


def cancel(lab: Lab, job_id: str) -> None:
    """Stop the job; its end is seen by the next look. Meant as a callback."""
    try:
        lab.cancel(job_id)
    except UserError as gone:  # it ended and was forgotten in the same moment
        lost(str(gone))


def can_reattach(lab: Lab, visits: Visits, key: str) -> bool:
    """Whether this tab started a job before it was reloaded, and the lab still knows it.

    A job that this very session started or took up is not taken up again, however it ended.
    """
    mine = visits.job_of(key)
    if mine is None or mine.id == st.session_state.get(_LAST_JOB):
        return False
    try:
        lab.snapshot(mine.id)
    except UserError:  # it ended long ago and is forgotten; there is nothing to tell
        return False
    return True


def reattach(visits: Visits, key: str) -> RunRequest | None:
    """Take the tab's job up again and return what it was asked for, where that was a run."""
    mine = visits.job_of(key)
    if mine is None:
        return None
    st.session_state[_OWNER] = mine.owner
    _take(mine)
    return mine.request


def finish(snapshot: JobSnapshot) -> None:
    """Put an ended job away: its record among the runs, or the sentence that says why there is none."""
    mine: OwnJob | None = st.session_state.pop(_JOB, None)
    request = mine.request if mine is not None else None
    experiment = mine.experiment if mine is not None else None
    if snapshot.state is not JobState.DONE:
        _keep_parts(experiment, snapshot)
        _set_trouble(snapshot.message, request, experiment)
        return
    if experiment is not None:
        _keep_result(experiment, snapshot.result or {})
        return
    if request is None:  # a calibration: the lab itself keeps it
        return
    try:
        add(RunRecord.from_json(snapshot.result))
    except UserError as fault:
        _set_trouble(str(fault), request)


def _keep_parts(experiment: Experiment | None, snapshot: JobSnapshot) -> None:
    """What a sweep streamed before it ended early; it can go on from there."""
    if experiment is None or experiment.kind != SWEEP:
        return
    try:
        record = gathered(snapshot.parts)
    except UserError:  # the trouble itself is told
        return
    if record is not None:
        _keep_result(experiment, record.to_json())


def lost(sentence: str) -> None:
    """The job is not known any more, for example after a restart of the server."""
    mine: OwnJob | None = st.session_state.pop(_JOB, None)
    if mine is None:
        _set_trouble(sentence, None)
    else:
        _set_trouble(sentence, mine.request, mine.experiment)


def _keep_result(experiment: Experiment, result: dict[str, Any]) -> None:
    kept: dict[str, dict[str, Any]] = dict(st.session_state.get(_RESULTS, {}))
    kept.pop(experiment.key, None)
    st.session_state[_RESULTS] = dict([*kept.items(), (experiment.key, result)][-MOST_RUNS:])


def result_of(experiment: Experiment) -> dict[str, Any] | None:
    """What exactly this experiment gave last in this visit; None where it was not done."""
    result: dict[str, Any] | None = st.session_state.get(_RESULTS, {}).get(experiment.key)
    return result


def results(kind: str) -> list[dict[str, Any]]:
    """What the experiments of one kind gave in this visit, the newest last."""
    found: dict[str, dict[str, Any]] = st.session_state.get(_RESULTS, {})
    return [result for key, result in found.items() if key.partition(" ")[0] == kind]


def experiment_trouble(experiment: Experiment) -> str:
    """Why exactly this experiment gave no result when it was tried last; else empty."""
    key, sentence = st.session_state.get(_EXPERIMENT_TROUBLE, ("", ""))
    return str(sentence) if key == experiment.key else ""


def add(record: RunRecord) -> None:
    """Keep a record, the newest last; the oldest go."""
    st.session_state[_RUNS] = [*records(), record][-MOST_RUNS:]


def records() -> list[RunRecord]:
    """The runs of this visit, the newest last."""
    return list(st.session_state.get(_RUNS, []))


def of(request: RunRequest) -> RunRecord | None:
    """The newest run with exactly these settings."""
    return next((record for record in reversed(records()) if record.request == request), None)


def trouble(now: RunRequest) -> str:
    """Why the last job gave no result, while the settings are still those of that job; else empty."""
    sentence, request = st.session_state.get(_TROUBLE, ("", None))
    return str(sentence) if request in {None, now} else ""


def _set_trouble(sentence: str, request: RunRequest | None, experiment: Experiment | None = None) -> None:
    if experiment is not None:
        st.session_state[_EXPERIMENT_TROUBLE] = (experiment.key, sentence)
    else:
        st.session_state[_TROUBLE] = (sentence, request)


def clear_trouble() -> None:
    """The visitor has moved on."""
    st.session_state.pop(_TROUBLE, None)
    st.session_state.pop(_EXPERIMENT_TROUBLE, None)


def loaded() -> RunRecord | None:
    """The record that was loaded from a file and is shown now."""
    record: RunRecord | None = st.session_state.get(LOADED)
    return record


def show_loaded(record: RunRecord | None) -> None:
    """Show a record from a file, or with None go back to this visit's own runs."""
    st.session_state[LOADED] = record
    if record is not None and record not in files():
        st.session_state[_FILES] = [*files(), record][-MOST_RUNS:]


def files() -> list[RunRecord]:
    """The records that were loaded in this visit, the newest last."""
    return list(st.session_state.get(_FILES, []))
