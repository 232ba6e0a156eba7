"""The measured beat of page 19: one text by one process and by several, and what they sent each other."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import streamlit as st

from core.analytic.split_record import CollectiveRecord, SplitRecord
from core.errors import UserError
from core.lab.split_trial import SplitTrial
from core.lesson.lesson import Lesson
from core.lesson.split_trial import cost_words, exchange_name, request_of, same_text, same_traffic
from core.ui import export, print_view, table
from core.ui.lab import experiment, files
from core.ui.lab.experiment import Notes
from core.ui.lesson import link, measured_beat, recorded, trial
from core.ui.plain import plain
from core.ui.table import Blank, Cell

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
    record = SplitTrial.from_json(result).split
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
            times = [_times(each, record) for each in record.collectives]
            table.show(_TIMES, times, "What one exchange takes")
            st.caption("A time holds the waiting for the other processes.")
            st.markdown(plain(record.text) or "The model wrote nothing.")


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
