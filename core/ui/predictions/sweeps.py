"""A sweep beside its predictions: errors by metric, every cell as a mark, and the conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from core.lab.cell_errors import CellErrors, cell_errors
from core.lab.gallery_entry import Entry
from core.lab.sweep_cell import SweptCell
from core.lab.sweep_record import DEFINITIONS, SweepRecord
from core.ui import export, picture, print_view, prose, table
from core.ui.figures.measured_and_predicted import ScatterPoint, measured_and_predicted
from core.ui.predictions import conditions
from core.ui.table import Blank, Cell
from core.units import format_count

#: What each metric is called.
METRICS: Final = {"ttft": "TTFT", "tpot": "TPOT", "end_to_end": "end to end"}
_NOISY: Final = "noisy cells"
_MS: Final = 1e3
_COLUMNS: Final = ("off by", "median, %", "90th percentile, %", "in range, %")
_MACHINE_COLUMNS: Final = (
    *("machine", "cells", "quiet", "noisy"),
    *(f"{name} {what}, %" for name in METRICS.values() for what in ("median", "p90")),
)
_CELLS: Final = (
    "cell", "prompt", "batch", "TTFT predicted, ms", "measured, ms", "TPOT predicted, ms", "measured, ms ",
    "end to end predicted, ms", "measured, ms  ", "noisy", "outside of what was calibrated",
)  # fmt: skip


def draw(record: SweepRecord, key: str) -> None:
    """Everything about one sweep, in the current container.

    Args:
        record: the sweep.
        key: of its elements.
    """
    prose.paragraph(sentence(record))
    found = cell_errors(record.cells)
    if found:
        left, right = st.columns([3, 2], gap="medium")
        with left:
            picture.show(_picture(record), key=f"{key}_scatter")
        with right:
            st.subheader("Errors by metric", anchor=False)
            table.show(_COLUMNS, [_error_cells(each) for each in found], "Errors by metric")
            prose.small(
                "An error is |predicted / measured - 1|, of the median of a cell's samples. From noisy "
                "cells no verdict is drawn."
            )
    _every_cell(record, key)
    conditions.draw(record.host, conditions.of_sweep(record), key)


def by_machine(entries: Sequence[Entry]) -> None:
    """The errors of every recorded sweep in one table, sorted by machine; nothing where there is none."""
    rows = [
        _machine_row(entry, entry.record)
        for entry in sorted(entries, key=lambda entry: (entry.machine, entry.created_at))
        if isinstance(entry.record, SweepRecord)
    ]
    if not rows:
        return
    st.subheader("Sweeps, by machine", anchor=False)
    export.show_table(
        _MACHINE_COLUMNS,
        rows,
        key="predictions_sweeps",
        file_name="sweeps",
        label="Errors of recorded sweeps by machine",
    )
    prose.small("Errors are of quiet cells: median and 90th percentile, in percent. Open a sweep below.")


def _machine_row(entry: Entry, record: SweepRecord) -> tuple[Cell, ...]:
    found = {each.metric: each for each in cell_errors(record.cells) if not each.noisy}
    errors: list[Cell] = []
    for metric in METRICS:
        each = found.get(metric)
        errors += [each.median, each.p90] if each else [Blank.DOES_NOT_APPLY] * 2
    quiet = next(iter(found.values())).cells if found else 0
    noisy = sum(bool(swept.noisy) for swept in record.cells)
    name = f"{entry.machine}, {entry.device}, {record.created_at[:10]}, seed {record.request.seed}"
    return (name, entry.what.partition(",")[0], quiet, noisy, *errors)


def sentence(record: SweepRecord) -> str:
    """What the sweep was, in one or two sentences."""
    asked, done = len(record.request.cells()), sum(1 for swept in record.cells if swept.samples)
    failed = len(record.cells) - done
    each = _times(record.request.repeats)
    said = f"{done:,} of {format_count(asked, 'cell')} predicted, then run: {each} each."
    if failed:
        said += f" {failed:,} could not be run."
    if record.left:
        said += f" Not done yet: {format_count(len(record.left), 'cell')}."
    return said


def _times(repeats: int) -> str:
    return f"{'once' if repeats == 1 else f'{repeats} times'} or more"


def _error_cells(found: CellErrors) -> tuple[Cell, ...]:
    cells = format_count(found.cells, "noisy cell" if found.noisy else "cell")
    return f"{METRICS[found.metric]}, {cells}", found.median, found.p90, round(100 * found.in_range, 1)


def _picture(record: SweepRecord) -> picture.Picture:
    kinds = tuple(METRICS.values())
    if any(swept.noisy for swept in record.cells):
        kinds = (*kinds, _NOISY)
    points = [
        _point(swept, metric)
        for swept in record.cells
        for metric in METRICS
        if swept.forecast is not None and swept.samples is not None
    ]
    return measured_and_predicted(points, kinds, "Predicted and measured, every cell", "ms")


def _point(swept: SweptCell, metric: str) -> ScatterPoint:
    predicted, measured = swept.predicted(metric), swept.measured(metric)
    if predicted is None or measured is None:
        raise ValueError("a cell without numbers has no mark")
    return ScatterPoint(
        id=f"{swept.cell.key} {metric}",
        name=f"{METRICS[metric]}, {cell_name(swept)}",
        kind=_NOISY if swept.noisy else METRICS[metric],
        measured=measured.median_s * _MS,
        predicted=predicted.value_s * _MS,
        low=max(predicted.low_s, predicted.value_s * 1e-3) * _MS,
        high=predicted.high_s * _MS,
    )


def cell_name(swept: SweptCell) -> str:
    """A cell in a few words."""
    cell = swept.cell
    return (
        f"{cell.model}, {cell.weights} / {cell.kv}, {cell.cache}, batch {cell.batch}, "
        f"{cell.prompt_tokens:,} + {cell.new_tokens:,} tokens"
    )


def _every_cell(record: SweepRecord, key: str) -> None:
    part = print_view.fold(f"Every cell ({len(record.cells):,})", key=f"{key}_cells")
    if not part.open:
        return
    with part.place:
        export.show_table(
            _CELLS,
            [_row(swept) for swept in record.cells],
            key=f"{key}_cells_table",
            file_name="sweep",
            label="Every cell of the sweep",
        )
        problems = [f"{cell_name(swept)}: {swept.problem}" for swept in record.cells if swept.problem]
        prose.bullets(problems)
        prose.small(f"TTFT: {DEFINITIONS['ttft_s']} TPOT: {DEFINITIONS['tpot_s']}")


def _row(swept: SweptCell) -> tuple[Cell, ...]:
    cell = swept.cell
    times: list[Cell] = []
    for metric in METRICS:
        predicted, measured = swept.predicted(metric), swept.measured(metric)
        times += [
            predicted.value_s * _MS if predicted else Blank.DOES_NOT_APPLY,
            measured.median_s * _MS if measured else Blank.DOES_NOT_APPLY,
        ]
    outside = ", ".join(swept.forecast.outside) if swept.forecast else swept.problem
    name = f"{cell.model}, {cell.weights} / {cell.kv}, {cell.cache}"
    return (
        name,
        cell.prompt_tokens,
        cell.batch,
        *times,
        "; ".join(swept.noisy) or "no",
        outside or "nothing",
    )
