"""The measured beat of the pages on serving: the page's trace, served by the engine beside the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import streamlit as st

from core.lab.serve_record import ServeRecord, Service
from core.lesson import serving_trial
from core.lesson.lesson import Lesson
from core.lesson.quantities.paged_attention import PAGED
from core.lesson.serving_trial import name_of
from core.ui import export, picture, print_view
from core.ui.figures.page_tables import page_tables
from core.ui.figures.requests import letter
from core.ui.figures.seat_plan import seat_plan
from core.ui.lab import experiment, files, runs
from core.ui.lab.experiment import Notes
from core.ui.lesson import control_row, measured_beat, prediction_beat, recorded, trial
from core.ui.lesson.serving_scenes import moment
from core.ui.picture import Picture
from core.ui.plain import plain
from core.ui.table import Blank, Cell
from core.units import format_seconds

_MS: Final = 1e3
#: What is counted comes first, then what is timed.
_COUNTED: Final = 2
_LINES: Final = (
    "steps served",
    "steps simulated",
    "wall time, s",
    "tokens a second",
    "mean time to a first token, s",
    "median step in which all write, ms",
)


def show_batching(lesson: Lesson) -> None:
    """Draw the beat of the page on batching: seats by time as they were served."""
    _show(lesson, _served_seats)


def show_paging(lesson: Lesson) -> None:
    """Draw the beat of the page on pages: block tables and memory as they were served."""
    _show(lesson, _served_pages)


def _show(lesson: Lesson, draw: Callable[[Lesson, ServeRecord], None]) -> None:
    measured_beat.heading(lesson)
    asked = serving_trial.experiment_of(lesson, control_row.case(lesson))
    experiment.show(
        asked,
        partial(_result, lesson, draw, runs.result_of(asked) is not None),
        key=lesson.id,
        # What was recorded holds the answer to the prediction.
        recorded=recorded.experiment(asked) if prediction_beat.is_answered(lesson) else None,
        notes=Notes(
            nothing="Press Run to serve the trace of the picture on this server, with the settings above.",
            measured=_where,
            recorded=lambda result: f"{_where(result)} {_noise(result)} Press Run for this server's own run.",
            noisy=_noise,
        ),
    )


def _where(result: dict[str, Any]) -> str:
    record = ServeRecord.from_json(result)
    device = record.host.device_name or record.host.cpu
    return (
        f"{files.clock(record.created_at)}, {record.model_name} in {record.request.weights}, on {device}, "
        f"{record.host.threads} threads."
    )


def _noise(result: dict[str, Any]) -> str:
    return trial.noise(ServeRecord.from_json(result).noisy)


def _result(
    lesson: Lesson,
    draw: Callable[[Lesson, ServeRecord], None],
    here: bool,
    result: dict[str, Any],
) -> None:
    """What came out; the times of a recorded run are left out where its host was busy."""
    record = ServeRecord.from_json(result)
    shown = len(_LINES) if here or not record.noisy else _COUNTED
    trial.check("Equal to the simulator", serving_trial.equal_steps(record))
    trial.check("Equal outputs", serving_trial.equal_outputs(record))
    columns = [_column(record, service) for service in record.services]
    export.show_table(
        ("", *(name_of(record, service) for service in record.services)),
        [(name, *cells) for name, *cells in zip(_LINES, *columns, strict=True)][:shown],
        key=f"{lesson.id}_served",
        file_name=f"{lesson.id}-served",
        label="Served and simulated",
    )
    draw(lesson, record)
    _tokens(lesson, record, timed=shown > _COUNTED)


def _column(record: ServeRecord, service: Service) -> tuple[Cell, ...]:
    """What one way of serving came to, in the order of ``_LINES``."""
    first_s = sum(request.ttft_s for request in service.requests) / len(service.requests)
    step_s = service.decode_step_s
    return (
        len(service.steps),
        serving_trial.simulated_steps(record, service),
        service.wall_s,
        service.tokens_per_s,
        first_s,
        Blank.DOES_NOT_APPLY if step_s is None else step_s * _MS,
    )


def _served_seats(lesson: Lesson, record: ServeRecord) -> None:
    for number, service in enumerate(record.services):
        title = f"Served, {name_of(record, service)}"
        drawn = seat_plan(serving_trial.seats_of(record, service), title, _source(record))
        _picture(lesson, f"seats_{number}", drawn)


def _served_pages(lesson: Lesson, record: ServeRecord) -> None:
    for number, service in enumerate(record.services):
        slots = serving_trial.slots_of(record, service)
        mean = sum(len(step.tables) for step in service.steps) / len(service.steps)
        st.caption(
            plain(
                f"{name_of(record, service).capitalize()}: {100 * slots.waste_share:.0f} % of the held slots "
                f"were empty, {mean:.1f} requests at once."
            )
        )
        if number == PAGED:
            served = moment(service.steps, record.request, service.way)
            drawn = replace(page_tables(served, _source(record)), title="Served: the cache at its fullest")
            _picture(lesson, "pages", drawn)


def _picture(lesson: Lesson, name: str, drawn: Picture) -> None:
    picture.show(drawn, key=f"{lesson.id}_served_{name}")


def _source(record: ServeRecord) -> str:
    return f"as it was served on {record.host.device_name or record.host.cpu}"


def _tokens(lesson: Lesson, record: ServeRecord, *, timed: bool) -> None:
    part = print_view.fold("Tokens of each request", key=f"{lesson.id}_tokens")
    if not part.open:
        return
    with part.place:
        for service in record.services:
            st.caption(plain(name_of(record, service).capitalize()))
            for number, request in enumerate(service.requests):
                written = " ".join(map(str, request.token_ids[:12]))
                more = " …" if len(request.token_ids) > 12 else ""
                first = f"first token after {format_seconds(request.ttft_s)}, " if timed else ""
                st.markdown(
                    plain(f"{letter(number)}: {first}{len(request.token_ids)} tokens: {written}{more}")
                )
