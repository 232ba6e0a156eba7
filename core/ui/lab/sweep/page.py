"""A sweep on the lab's page: set it, run it as a chain of jobs, watch its cells come in, keep them.

A sweep may be longer than a job. When a job of it ends unfinished, the next one is put into the queue by the
page, behind whoever waits; a stopped sweep goes on where it ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab.experiment import SWEEP, Experiment
from core.lab.job import JobState
from core.lab.request import DEVICES, Device
from core.lab.status import LabStatus
from core.lab.sweep_forecast import expected_s
from core.lab.sweep_parts import gathered
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import SweepRequest
from core.ui import print_view
from core.ui.lab import models, runs
from core.ui.lab.service import Lab, Visits
from core.ui.lab.sweep import controls, files, results, server, settings
from core.ui.lab.watch import WAITING_S, await_ready, is_preparing, look, preparing, queued
from core.ui.plain import plain
from core.ui.state_card import State, state_card
from core.units import format_count

#: Seconds between two looks at the cells that came in.
_LOOK_S: Final = 2.0
_GOES_ON: Final = "lab_sweep_goes_on"
_LENGTHS: Final = "lab_sweep_lengths"


def show(lab: Lab, visits: Visits) -> None:
    """Draw the controls, where it stands, and what came out so far."""
    request = settings.current()
    status = lab.status(request.device)
    locked = _mine()
    controls.draw(locked=locked)
    controls.more(status, locked=locked)
    problem = controls.problem(request, status)
    if runs.job() is not None:
        _under_way(lab, visits)
        return
    record = _record(request)
    if record is None and request.device != (device := _device_here(request, status)):
        settings.run_on(device)  # the settings are those of a file from elsewhere, and were changed
        st.rerun()
    if record is not None and not record.is_finished and _goes_on(request):
        _start(lab, visits, request, record)
        st.rerun()
    _at_rest(lab, request, record, problem)
    if not print_view.is_on():
        anew = replace(request, device=_device_here(request, status))
        _buttons(lab, visits, anew, record, stuck=bool(problem))
    if record is not None and record.cells:
        results.draw(record, "sweep")
    elif files.loaded() is None and not runs.results(SWEEP):
        server.draw(results.draw, "sweep_server")
    files.in_and_out(record)


def take_up(experiment: Experiment) -> None:
    """After a reload: the sweep that this tab has under way, its settings, and that it goes on."""
    request = SweepRequest.from_json(experiment.payload["request"])
    settings.use(request)
    st.session_state[_GOES_ON] = request


def _mine() -> bool:
    """Whether the visit's job is a sweep."""
    job = runs.job()
    return job is not None and job.experiment is not None and job.experiment.kind == SWEEP


def _device_here(request: SweepRequest, status: LabStatus) -> Device:
    """The device of a sweep, or the first of this computer where that one is not there."""
    known = status.info.devices
    if not known or request.device in known:
        return request.device
    return next(device for device in DEVICES if device in known)


def _record(request: SweepRequest) -> SweepRecord | None:
    """What there is of exactly this sweep: loaded from a file, or made in this visit."""
    loaded, made = files.loaded(), runs.result_of(_experiment(request, None))
    if loaded is not None and loaded.request == request:
        return loaded
    try:
        return None if made is None else SweepRecord.from_json(made)
    except UserError as fault:
        st.error(plain(str(fault)))
        return None


def _goes_on(request: SweepRequest) -> bool:
    """Whether the sweep that was started, and not stopped, is this one; nothing went wrong since."""
    if _trouble(request):  # it goes on when asked, also after another job has taken the trouble's place
        st.session_state.pop(_GOES_ON, None)
    asked: SweepRequest | None = st.session_state.get(_GOES_ON)
    return asked == request


def _trouble(request: SweepRequest) -> str:
    return runs.experiment_trouble(_experiment(request, None))


def _experiment(request: SweepRequest, record: SweepRecord | None) -> Experiment:
    """A part of a sweep, going on from a record; all parts of one sweep are the same experiment."""
    asked = request.to_json()
    payload = {"request": asked, "record": record.to_json() if record else None}
    what = f"a sweep of {format_count(len(request.cells()), 'cell')}"
    return Experiment(SWEEP, payload, what, settings=asked)


def _start(lab: Lab, visits: Visits, request: SweepRequest, record: SweepRecord | None) -> None:
    settings.run_on(request.device)
    files.close()
    st.session_state[_GOES_ON] = request
    runs.start_experiment(lab, visits, _experiment(request, record), request.device)
    runs.just_started()


def _stop(lab: Lab) -> None:
    st.session_state.pop(_GOES_ON, None)
    if (job := runs.job()) is not None:
        runs.cancel(lab, job.id)


def _buttons(
    lab: Lab, visits: Visits, anew: SweepRequest, record: SweepRecord | None, *, stuck: bool
) -> None:
    begun = record is not None and not record.is_finished and bool(record.cells)
    with st.container(horizontal=True):
        st.button(
            "Go on" if begun else "Run" if record is None else "Run again",
            type="primary",
            icon=":material/play_arrow:",
            key="sweep_run",
            disabled=stuck,
            help="Runs in a process of its own on this server, one visitor after the other.",
            on_click=_start,
            args=(lab, visits, record.request, record) if record and begun else (lab, visits, anew, None),
        )
        if begun:
            st.button("Begin anew", key="sweep_anew", on_click=_start, args=(lab, visits, anew, None))


def _at_rest(lab: Lab, request: SweepRequest, record: SweepRecord | None, problem: str) -> None:
    status = lab.status(request.device)
    loaded = record is not None and files.loaded() is record
    if problem:
        state_card("failed", problem)
    elif not loaded and (trouble := _trouble(request)):
        _in_trouble(trouble, record)
    elif is_preparing(status):
        st.fragment(await_ready, key="sweep_await", run_every=WAITING_S)(lab, request.device, preparing)
    elif record is None:
        state_card("nothing", controls.length(request, _expected_s(request, status)))
    elif not record.is_finished:
        state_card("ended" if record.cells else "nothing", f"{_done(record)}. Go on, or keep them.")
    else:
        here: State = "noisy" if all(swept.noisy for swept in record.cells) else "measured"
        state_card("elsewhere" if loaded else here, files.where(record))


def _in_trouble(trouble: str, record: SweepRecord | None) -> None:
    """Why the last job gave no result, and what there is all the same."""
    if record is None or not record.cells:
        state_card("failed", trouble)
    elif record.is_finished:
        state_card("failed", f"{trouble} The cells are those of the sweep before.")
    else:
        state_card("ended", f"{trouble} {_done(record)}. Go on, or begin anew.")


def _expected_s(request: SweepRequest, status: LabStatus) -> float | None:
    """Seconds that all cells are predicted to take; None where that cannot be said."""
    calibration = status.calibration
    if calibration is None:
        return None
    known: dict[str, float] = st.session_state.setdefault(_LENGTHS, {})
    key = f"{calibration.id} {request}"
    if key not in known:
        try:
            known[key] = sum(expected_s(cell, request.repeats, calibration) for cell in request.cells())
        except UserError:  # a format without a rate: its cell will say so
            return None
    return known[key]


def _under_way(lab: Lab, visits: Visits) -> None:
    st.fragment(_watch, key="sweep_watch", run_every=_LOOK_S)(lab, _mine())
    st.button("Stop", icon=":material/stop:", key="sweep_stop", on_click=_stop, args=(lab,))


def _watch(lab: Lab, mine: bool) -> None:
    """Where the job stands and the cells so far, again and again until it ends."""
    snapshot = look(lab)
    if snapshot is None or snapshot.state.is_final:
        st.rerun()
    if not mine:
        state_card("queued", "Another run of yours in the lab is under way. A sweep can start after it.")
        return
    record = gathered(snapshot.parts) if snapshot.parts else _going_on_from()
    if snapshot.state is JobState.QUEUED:
        queued(snapshot, lab.status(settings.current().device))
    else:
        state_card("measuring", _progress(record, snapshot.phase), snapshot.fraction)
    if record is not None and record.cells:
        results.draw(record, "sweep_live")


def _going_on_from() -> SweepRecord | None:
    """What the sweep's jobs before this one gave; a job that waits for its turn has streamed nothing."""
    job = runs.job()
    begun = None if job is None or job.experiment is None else job.experiment.payload["record"]
    return None if begun is None else SweepRecord.from_json(begun)


def _done(record: SweepRecord) -> str:
    return f"Done: {len(record.cells):,} of {format_count(len(record.request.cells()), 'cell')}"


def _progress(record: SweepRecord | None, phase: str) -> str:
    if record is None:
        return f"{(phase or 'starting').capitalize()}."
    left = record.left
    done = f"{_done(record)}."
    if not left:
        return f"{done} Now the formats are judged."
    cell = left[0]
    return (
        f"{done} Now: {models.short(cell.model)}, {cell.weights} / {cell.kv}, batch {cell.batch}, "
        f"{cell.prompt_tokens:,} prompt tokens."
    )
