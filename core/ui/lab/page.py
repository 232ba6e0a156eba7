"""How the lab's page hangs together: where each part stands, and what redraws when.

Two parts redraw by themselves. The bench (controls, prediction, comparison) redraws when a control
changes; the watch (state and text) redraws on a timer while something is under way. When nothing
is, the bench draws the state and the text too. They write into places that were laid out before, so
nothing jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import UserError
from core.lab.compare import compare, prediction_beside
from core.lab.predict import predict
from core.lab.record import RunRecord
from core.lab.status import LabStatus
from core.ui import print_view, prose, source, visit_key
from core.ui.figures.operator_times import operator_times
from core.ui.figures.step_times import step_times
from core.ui.lab import (
    arithmetic,
    basis,
    comparison,
    controls,
    files,
    learning,
    models,
    runs,
    settings,
    two_runs,
)
from core.ui.lab.arithmetic import Case
from core.ui.lab.forecast import Forecast, forecast
from core.ui.lab.service import Lab, Visits
from core.ui.lab.watch import answer, period_s, watch
from core.ui.state_card import State, state_card

#: What a visitor sees, and the function that makes it.
SOURCES: Final = (
    ("the prediction", predict),
    ("measured beside predicted", compare),
    ("the arithmetic", arithmetic.worked_number),
    ("time per token over the answer", step_times),
    ("a pass by operator", operator_times),
)
_WATCHING: Final = "lab_watching"


@dataclass(frozen=True, slots=True)
class Places:
    """The parts of the page, in reading order."""

    controls: DeltaGenerator
    state: DeltaGenerator
    numbers: DeltaGenerator
    operators: DeltaGenerator
    arithmetic: DeltaGenerator
    records: DeltaGenerator


def lay_out() -> Places:
    """Reserve the places: what you set and what it wrote on the left, the numbers on the right."""
    left, right = st.columns(2, gap="medium")
    controls, state = left.container(), left.container()
    numbers = right.container()
    below_left, below_right = st.columns([7, 5], gap="large")
    operators, arithmetic = below_left.container(), below_right.container()
    return Places(controls, state, numbers, operators, arithmetic, st.container())


def show(lab: Lab, visits: Visits) -> None:
    """Draw the page and keep it going, with runs made in ``lab`` and owned by ``visits``."""
    settings.adopt_link()
    places = lay_out()
    status = lab.status(settings.current().device)
    period = period_s(lab, status)
    st.session_state[_WATCHING] = period is not None
    st.fragment(bench, key="lab_bench")(lab, visits, places)
    if period is not None:
        with places.state:
            st.fragment(watch, key="lab_watch", run_every=period)(lab, status.device, period)
    learning.end()
    source.show(SOURCES, key="lab")


def bench(lab: Lab, visits: Visits, places: Places) -> None:
    """Controls, prediction and comparison: everything that follows from a control at once."""
    with places.controls:
        status = lab.status(settings.current().device)
        controls.draw(status)
        now = forecast(lab, settings.current())
        if not print_view.is_on():
            learning.ask()
        _run_row(lab, visits, status, now)
    if (key := visit_key.known_key()) is not None:
        visits.note(key, settings.current())
    record = runs.loaded() or runs.of(settings.current())
    if record is not None and runs.loaded() is None:
        learning.settle(record)
    if not st.session_state[_WATCHING]:
        with places.state:
            _at_rest(record, now)
    _results(places, lab, visits, now, record)
    with places.records:
        _records(record)
    # Last of all, so that every widget of this fragment has been drawn before it starts anew.
    if runs.just_started():
        st.rerun()


def _run_row(lab: Lab, visits: Visits, status: LabStatus, now: Forecast) -> None:
    """Notes, what is wrong, and Run."""
    for note in settings.notes():
        st.warning(note, icon=":material/link:")
    problem = controls.problem(settings.current(), status) or now.problem
    if problem:
        st.error(problem)
    with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
        st.button(
            "Run",
            type="primary",
            icon=":material/play_arrow:",
            key="lab_run",
            disabled=bool(problem) or runs.job() is not None or status.state in {"failed", "closed"},
            on_click=_start,
            args=(lab, visits),
        )
        _cancel_button(lab)
        controls.more(status)
        link = st.popover("Link", icon=":material/link:", key="lab_link", on_change="rerun")
        if link.open:
            with link:
                st.code(settings.address(), language=None, wrap_lines=True)
                st.caption("These settings without your prompt.")


def _cancel_button(lab: Lab) -> None:
    job = runs.job()
    st.button(
        "Cancel",
        icon=":material/stop:",
        key="lab_cancel",
        disabled=job is None,
        on_click=runs.cancel,
        args=(lab, job.id if job else ""),
    )


def _start(lab: Lab, visits: Visits) -> None:
    settings.changed()
    learning.note_start(settings.current())
    runs.start(lab, visits, settings.current())


def _at_rest(record: RunRecord | None, now: Forecast) -> None:
    """Where things stand while nothing is under way, and the text that was written."""
    trouble = runs.trouble(settings.current())
    if trouble:
        state_card("failed", trouble)
    elif record is None:
        state_card("nothing", _nothing(now))
    elif runs.loaded() is not None:
        state_card("elsewhere", f"{files.when(record)}, {files.what(record)}, on {files.where(record)}.")
        if record.request != settings.current():
            prose.small("All numbers are this file's. The controls are those of your next run.")
        files.loaded_buttons(record)
    else:
        state: State = "noisy" if record.noisy else "measured"
        state_card(state, f"{files.when(record)}, {files.what(record)}, on {files.where(record)}.")
    text = record.text if record is not None and not trouble else ""
    answer(text, "The answer appears here." if record is None else "The model wrote nothing.")


def _nothing(now: Forecast) -> str:
    if now.case is None:
        return now.problem or "There is no prediction yet, because this computer's speed is not known."
    if runs.records():
        return "These settings were not run in this visit. Press Run to see how close the prediction comes."
    return "The numbers beside this are predictions. Press Run to see how close they come."


def _results(places: Places, lab: Lab, visits: Visits, now: Forecast, record: RunRecord | None) -> None:
    prediction = now.case.prediction if now.case else None
    if record is not None:
        prediction = prediction_beside(record)
    with places.numbers:
        comparison.headline(prediction, record)
        if record is not None:
            comparison.verdict(record)
            learning.tell(record)
        else:
            basis.show(now)
        if prediction is not None:
            asked = settings.current() if record is None else record.request
            comparison.steps(prediction, record, cached=asked.cache != "none")
        else:
            st.skeleton(height=330)
    case = _case_of(record) if record is not None else now.case
    if prediction is not None:
        with places.operators:
            comparison.by_operator(prediction, record)
    with places.arithmetic:
        if case is not None:
            _arithmetic(case)
        basis.calibration(lab, visits, lab.status(settings.current().device), case)


def _arithmetic(case: Case) -> None:
    try:
        comparison.work_out(case)
    except UserError as gap:  # a record whose calibration lacks what its request needs
        st.error(str(gap))


def _case_of(record: RunRecord) -> Case | None:
    if record.request.model not in models.known_ids():
        return None
    model = models.spec(record.request.model)
    calibrated = record.calibration
    then = calibrated.at_pace(record.load.predicted_at(calibrated.pace))  # as the run was predicted
    machine = then.machine(record.request.weights)
    pace = "the pace of this run's prediction"
    return Case(record.request, model, machine, prediction_beside(record), pace, record.load.rehearsed)


def _records(record: RunRecord | None) -> None:
    if record is not None:
        files.save_button(record)
    fold = st.expander("Load a saved run", key="lab_load_fold", on_change="rerun", icon=":material/upload:")
    if fold.open:
        with fold:
            files.load_field()
    files.own_runs()
    two_runs.show()
