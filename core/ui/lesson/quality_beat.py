"""The measured beat of page 12: every format of the engine held against a reference, and where each loses."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import streamlit as st

from core.errors import UserError
from core.lab.experiment import Experiment
from core.lab.quality_record import FormatRow, MapRecord, QualityRecord
from core.lab.quality_tensor import SchemeRecord, TensorRecord
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.lesson.quality_trial import (
    THOUSAND,
    experiment_of,
    map_names,
    map_title,
    reference_words,
    request_of,
    row_name,
)
from core.ui import export, picture, print_view, table
from core.ui.figures.error_map import error_map
from core.ui.figures.loss_by_size import FormatPoint, loss_by_size
from core.ui.figures.values_and_grid import values_and_grid
from core.ui.lab import experiment, files, runs
from core.ui.lab.experiment import Notes
from core.ui.lesson import link, measured_beat, recorded, trial
from core.ui.plain import plain
from core.ui.table import Blank, Cell
from core.ui.words import operator_name
from core.units import KIB, MB

_COLUMNS: Final = (
    "format",
    "weights, MB",
    "cache, KiB a token",
    "KL, 1/1000 nat",
    "same top word, %",
    "perplexity",
    "tokens/s",
)


def show(lesson: Lesson) -> None:
    """Draw the beat: what to compare, where it stands, and what fewer bytes cost."""
    measured_beat.heading(lesson)
    trial.choice(lesson, lesson.beside[0])
    asked = _experiment(lesson)
    experiment.show(
        asked,
        partial(_cost, lesson),
        key=lesson.id,
        recorded=recorded.experiment(asked),
        notes=Notes(
            nothing="Press Run to compare the formats on this server; it takes a minute or more.",
            measured=_where,
            recorded=lambda result: (
                f"{_where(result)} {_noise(result)} Press Run for this server's own numbers."
            ),
            noisy=_noise,
        ),
    )


def details() -> None:
    """Draw the table and where it is lost, over the whole width; nothing before a run. A fragment's body."""
    lesson = lessons()["quantising"]
    asked = _experiment(lesson)
    result = runs.result_of(asked) or recorded.experiment(asked)
    record = None if result is None or runs.job() is not None else _read(result)
    if record is None:
        return
    st.header("Every format, and where it loses", anchor=False)
    _table(lesson, record)
    left, right = st.columns(2, gap="large")
    with left:
        _maps(lesson, record)
    with right:
        _tensor(lesson, record.tensor)


def _experiment(lesson: Lesson) -> Experiment:
    return experiment_of(request_of(link.current(lesson).values))


def _read(result: dict[str, Any]) -> QualityRecord | None:
    """A result as a record; None where it does not hold, which is said where it would be drawn."""
    try:
        return QualityRecord.from_json(result)
    except UserError:
        return None


def _where(result: dict[str, Any]) -> str:
    record = _read(result)
    if record is None:
        return "What came back cannot be shown."
    device = record.host.device_name or record.host.cpu
    return (
        f"{files.clock(record.created_at)}, {record.model_name}, on {device}, {record.host.threads} threads; "
        f"{record.predicted} tokens of {record.text_title}."
    )


def _noise(result: dict[str, Any]) -> str:
    record = _read(result)
    reasons = () if record is None else record.noisy
    if record is None or not reasons:
        return ""
    if not any(row.step_s for row in record.rows):
        return "The host was busy, so no speeds are given."
    tail = "the other numbers do not depend on time"
    return f"The speeds are not to be trusted ({', '.join(reasons)}); {tail}."


def _cost(lesson: Lesson, result: dict[str, Any]) -> None:
    record = QualityRecord.from_json(result)
    st.markdown(plain(reference_words(record)))
    if points := _points(record.rows):
        picture.show(loss_by_size(points), key=f"{lesson.id}_loss")


def _table(lesson: Lesson, record: QualityRecord) -> None:
    export.show_table(
        _COLUMNS,
        [_row(row) for row in record.rows],
        key=f"{lesson.id}_formats",
        file_name="formats",
        label="What each format loses, weighs and how fast it is",
    )
    st.caption(plain(_table_words(record)))


def _row(row: FormatRow) -> tuple[Cell, ...]:
    return (
        row_name(row),
        row.weight_bytes / MB,
        row.cache_bytes_per_token / KIB,
        row.kl * THOUSAND,
        100 * row.agreement,
        row.perplexity,
        Blank.NOT_YET if row.tokens_per_s is None else row.tokens_per_s,
    )


def _table_words(record: QualityRecord) -> str:
    """What the columns mean and how sure they are."""
    changes = [row.nll_change_error for row in record.rows[1:]]
    sure = f" Against the reference's, a perplexity is sure to {max(changes):.1%}." if changes else ""
    left = f" Time did not allow {', '.join(record.left_out)}." if record.left_out else ""
    return (
        "Each row rounds one thing: the weights with their products, or the cache. The text is read in "
        f"windows of {record.window} tokens.{sure} Speed: one sequence at a context of {record.context} "
        f"tokens, the median of 30 steps or more after a warm-up.{left}"
    )


def _points(rows: tuple[FormatRow, ...]) -> list[FormatPoint]:
    """Of each format but the reference; what loses nothing has no place on a log axis."""
    reference, *others = rows
    return [_point(row, reference) for row in others if row.kl > 0]


def _point(row: FormatRow, reference: FormatRow) -> FormatPoint:
    of_weights = row.kv == reference.kv
    size, whole = (
        (entry.weight_bytes if of_weights else entry.cache_bytes_per_token) for entry in (row, reference)
    )
    return FormatPoint(
        name=row.weights if of_weights else row.kv,
        of="weights" if of_weights else "cache",
        part=size / whole,
        loss=row.kl * THOUSAND,
        rate=row.tokens_per_s,
    )


def _maps(lesson: Lesson, record: QualityRecord) -> None:
    """One map at a time; in print all of them."""
    known = map_names(record)
    if print_view.is_on():
        for index, found in enumerate(known.values()):
            _map(found, f"{lesson.id}_map_{index}")
        return
    chosen = st.selectbox("Where it is lost", list(known), key=f"{lesson.id}_map_of")
    _map(known[chosen], f"{lesson.id}_map")


def _map(found: MapRecord, key: str) -> None:
    columns = tuple(operator_name(name) for name in found.columns)
    picture.show(error_map(map_title(found), columns, found.sqnr_db, found.worst_db), key=key)


def _tensor(lesson: Lesson, found: TensorRecord) -> None:
    title = f"Weights of {operator_name(found.operator)} in layer {found.layer}, and grids of 4 bits"
    picture.show(values_and_grid(found.histogram, found.grids, title), key=f"{lesson.id}_tensor")
    part = print_view.fold("The same matrix with every granularity", key=f"{lesson.id}_schemes")
    if not part.open:
        return
    with part.place:
        columns = ("one grid for", "bits a weight", "SQNR expected, dB", "SQNR counted, dB", "worst row, dB")
        rows: list[tuple[Cell, ...]] = [
            (
                f"{scheme.shared_by}, {scheme.bits} bits, {_kind(scheme)}",
                scheme.bits_per_weight,
                scheme.expected_db,
                "nothing lost" if scheme.sqnr_db is None else scheme.sqnr_db,
                "nothing lost" if scheme.worst_row_db is None else scheme.worst_row_db,
            )
            for scheme in found.schemes
        ]
        table.show(columns, rows, "The matrix with every granularity")
        st.caption(
            plain(
                "Expected is an error of step² / 12 for every number. Counted and expected differ most "
                "where the weights lie on the grid already: in asymmetric groups of 32, as the file has them."
            )
        )


def _kind(scheme: SchemeRecord) -> str:
    return "symmetric" if scheme.symmetric else "asymmetric"
