"""The measured beat of page 19: one text by one process and by several, and what they sent each other."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import streamlit as st

from core.analytic.split_record import CollectiveRecord, SplitRecord
from core.errors import UserError
from core.lab.local_link import LocalLink
from core.lab.split_trial import SplitTrial
from core.lesson.lesson import Lesson
from core.lesson.split_trial import (
    cost_words,
    exchange_name,
    predicted_s,
    request_of,
    same_text,
    same_traffic,
)
from core.ui import export, print_view, table
from core.ui.lab import experiment, files
from core.ui.lab.experiment import Notes
from core.ui.lesson import link, measured_beat, recorded, trial
from core.ui.plain import plain
from core.ui.table import Blank, Cell
from core.units import format_gb, format_seconds

_MS: Final = 1e3
_COUNTS: Final = ("exchange", "times", "bytes", "predicted")
_LEFT_OUT: Final = "The arithmetic leaves out the chosen token, 8 bytes a step. "
_TIMES: Final = ("exchange", "median, ms", "10 %, ms", "90 %, ms")


def show(lesson: Lesson) -> None:
    """Draw the beat: how to split, where it stands, and what came out."""
    measured_beat.heading(lesson)
    trial.choice(lesson, lesson.beside[0])
    asked = request_of(link.current(lesson).values).experiment("one text by one process and by several")
    experiment.show(
        asked,
        partial(_result, lesson),
        key=lesson.id,
        recorded=recorded.experiment(asked),
        notes=Notes(
            nothing="Press Run to split the embedded model on this server; it takes about half a minute.",
            measured=_where,
            recorded=lambda result: f"{_where(result)} {_noise(result)} Press Run for this server's own run.",
            noisy=_noise,
        ),
    )


def _where(result: dict[str, Any]) -> str:
    try:
        record = SplitTrial.from_json(result)
    except UserError:  # said where the result would stand
        return ""
    device = record.host.device_name or record.host.cpu
    return f"{files.clock(record.created_at)}, {record.model_name} in {record.split.weights}, on {device}."


def _noise(result: dict[str, Any]) -> str:
    try:
        return trial.noise(SplitTrial.from_json(result).noisy)
    except UserError:
        return ""


def _result(lesson: Lesson, result: dict[str, Any]) -> None:
    made = SplitTrial.from_json(result)
    record = made.split
    trial.check("The sum of the parts is the whole", same_text(record))
    trial.check("Counted as predicted", same_traffic(record))
    export.show_table(
        _COUNTS,
        [_counts(each, record) for each in record.collectives],
        key=f"{lesson.id}_exchanges",
        file_name="exchanges",
        label="What a process exchanged with others",
    )
    st.caption(
        plain(
            f"Of one process, over {record.steps} steps: the prompt first, then a token each. Bytes are "
            f"the tensors'. {_LEFT_OUT if record.pp > 1 else ''}{cost_words(record)}"
        )
    )
    part = print_view.fold("What one exchange takes, and the text", key=f"{lesson.id}_times")
    if part.open:
        with part.place:
            _one_exchange(made)
            st.markdown(plain(record.text) or "The model wrote nothing.")


def _one_exchange(made: SplitTrial) -> None:
    """The time of one exchange, beside its prediction where a calibration knew the link before the run."""
    record, link = made.split, made.link
    times = [_times(each, record) for each in record.collectives]
    said = "A time holds the waiting for the other processes."
    if link is None:
        table.show(_TIMES, times, "What one exchange takes")
        st.caption(f"{said} A full calibration in the Engine lab gives a prediction for the next run.")
        return
    rows = [(*row, _predicted(each, link)) for row, each in zip(times, record.collectives, strict=True)]
    table.show((*_TIMES, "predicted, ms"), rows, "What one exchange takes")
    st.caption(
        plain(
            f"{said} The prediction is of the exchange alone, from a calibration between {link.ranks} "
            f"processes, {files.clock(link.measured_at)}: {format_seconds(link.latency_s)} and "
            f"{format_gb(link.bytes_per_s)}/s one way."
        )
    )


def _predicted(collective: CollectiveRecord, link: LocalLink) -> Cell:
    seconds = predicted_s(collective, link)
    return Blank.DOES_NOT_APPLY if seconds is None else seconds * _MS


def _counts(collective: CollectiveRecord, record: SplitRecord) -> tuple[Cell, ...]:
    return (
        exchange_name(collective, record),
        collective.count,
        collective.message_bytes,
        Blank.DOES_NOT_APPLY if collective.predicted_bytes is None else collective.predicted_bytes,
    )


def _times(collective: CollectiveRecord, record: SplitRecord) -> tuple[Cell, ...]:
    seconds = (collective.median_s, collective.p10_s, collective.p90_s)
    return (exchange_name(collective, record), *(value * _MS for value in seconds))
