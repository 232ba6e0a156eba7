"""How far measurements lie from predictions on computers like this one: the range that a prediction gets.

The half-widths are fitted to recorded sweeps whose predictions were made before their runs; 80 of 100
measured medians lie within ``predicted / e**half_width`` and ``predicted * e**half_width``.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from core.catalog.assets import read_csv
from core.lab.sweep_cell import METRICS
from core.lab.sweep_record import SweepRecord

FILE: Final = "lab_ranges"
REGIMES: Final = ("single", "batch")
_COVERED: Final = 80
_COLUMNS: Final = ("metric", "regime", "half_width", "cells", "sweeps", "date")


@dataclass(frozen=True, slots=True)
class Range:
    """Half of the width, as a logarithm, of one metric in one regime, and what it was fitted to."""

    metric: str
    regime: str
    half_width: float
    cells: int
    sweeps: int
    date: str


def half_width(metric: str, batch: int) -> float:
    """The half-width of a metric for a batch, as a logarithm.

    >>> 0.0 < half_width("tpot", 1) < 0.5
    True
    """
    return _ranges()[metric, _regime(batch)].half_width


def fit_ranges(records: Sequence[SweepRecord]) -> tuple[Range, ...]:
    """Fit the half-widths to quiet cells of sweeps that lay within what was calibrated.

    Args:
        records: sweeps of one machine or of several, with single requests and with batches.
    """
    dates = max(record.created_at for record in records)[:10]
    return tuple(
        Range(metric, regime, width, count, len(records), dates)
        for metric in METRICS
        for regime in REGIMES
        if (logs := _logs(records, metric, regime))
        for width, count in [_width(logs)]
    )


def written(ranges: Iterable[Range]) -> str:
    """The text of the asset."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for row in ranges:
        table.writerow([row.metric, row.regime, f"{row.half_width:.4f}", row.cells, row.sweeps, row.date])
    return text.getvalue()


def _logs(records: Sequence[SweepRecord], metric: str, regime: str) -> list[float]:
    return [
        abs(math.log1p(error))
        for record in records
        for swept in record.cells
        if not swept.noisy and swept.forecast and not swept.forecast.outside
        if _regime(swept.cell.batch) == regime and (error := swept.error(metric)) is not None
    ]


def _width(logs: list[float]) -> tuple[float, int]:
    # Few cells: the next one outwards, for a range that holds too few is worse than a wide one.
    return float(np.percentile(logs, _COVERED, method="higher")), len(logs)


def _regime(batch: int) -> str:
    return "single" if batch == 1 else "batch"


@lru_cache(maxsize=1)
def _ranges() -> dict[tuple[str, str], Range]:
    rows = [
        Range(
            metric=row["metric"],
            regime=row["regime"],
            half_width=float(row["half_width"]),
            cells=int(row["cells"]),
            sweeps=int(row["sweeps"]),
            date=row["date"],
        )
        for row in read_csv(FILE)
    ]
    return {(row.metric, row.regime): row for row in rows}
