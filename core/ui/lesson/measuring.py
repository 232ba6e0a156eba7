"""A lesson's runs in the lab: one after the other, under the visit's name, with the lab page's own records.

A record that was made on the lab's page counts here too, where it is of the same request. The lab
is only woken when somebody measures: who reads a lesson starts no worker.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab.record import RunRecord
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import MeasuredRun
from core.ui import visit_key
from core.ui.lab import runs, service

_PENDING: Final = "lesson_runs_pending"
_FIRST: Final = "lesson_runs_are_fresh"
_REATTACH: Final = "lesson_reattach"


def records(lesson: Lesson) -> list[RunRecord] | None:
    """The newest record of each run, in the lesson's order; None while one is missing."""
    found = [runs.of(run.request) for run in lesson.measurement.runs]
    return [record for record in found if record is not None] if all(found) else None


def trouble(lesson: Lesson) -> str:
    """Why one of the lesson's runs gave no result; empty where none failed."""
    sentences = (runs.trouble(run.request) for run in lesson.measurement.runs)
    return next(filter(None, sentences), "")


def start(lesson: Lesson) -> None:
    """Measure all runs anew. Meant as a callback."""
    st.session_state[_PENDING] = tuple(run.name for run in lesson.measurement.runs)
    st.session_state[_FIRST] = lesson.id
    _start_next(lesson)


def advance(lesson: Lesson) -> None:
    """Start the next run where one ended and another waits; none after one that gave no result."""
    if runs.job() is None and _pending():
        if trouble(lesson) or st.session_state.get(_FIRST) != lesson.id:
            st.session_state[_PENDING] = ()
        else:
            _start_next(lesson)


def current(lesson: Lesson) -> MeasuredRun | None:
    """The lesson's run that is under way."""
    job = runs.job()
    if job is None:
        return None
    return next((run for run in lesson.measurement.runs if run.request == job.request), None)


def recognise(lesson: Lesson) -> None:
    """Find this tab's job again after a reload; draws nothing. The body of a fragment."""
    key = visit_key.ask()
    if key is None or service.visits().job_of(key) is None:
        return
    if runs.can_reattach(service.lab(), service.visits(), key):
        runs.reattach(service.visits(), key)
        _resume(lesson)
        st.rerun()


def cancel() -> None:
    """Stop what is under way, and what would follow it. Meant as a callback."""
    st.session_state[_PENDING] = ()
    job = runs.job()
    if job is not None:
        runs.cancel(service.lab(), job.id)


def _resume(lesson: Lesson) -> None:
    """After a reload the records are gone: the other runs of the lesson follow again."""
    running = current(lesson)
    if running is not None:
        st.session_state[_FIRST] = lesson.id
        others = (run.name for run in lesson.measurement.runs if run is not running)
        st.session_state[_PENDING] = tuple(others)


def _pending() -> tuple[str, ...]:
    return tuple(st.session_state.get(_PENDING, ()))


def _start_next(lesson: Lesson) -> None:
    name, *rest = _pending()
    st.session_state[_PENDING] = tuple(rest)
    request = next(run.request for run in lesson.measurement.runs if run.name == name)
    runs.start(service.lab(), service.visits(), request)
    runs.just_started()  # the lab page's own signal; here the whole page is drawn anyway
