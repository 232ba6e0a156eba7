"""How far off the predictions of a sweep's cells were, by what was predicted.

Noisy cells are counted apart: no verdict is drawn from them. An error is
``|predicted / measured - 1|`` in percent, of the median of a cell's samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.lab.sweep_cell import METRICS, SweptCell


@dataclass(frozen=True, slots=True)
class CellErrors:
    """Errors of some cells in one metric.

    Attributes:
        metric: one of ``METRICS``. noisy: whether the cells are the noisy ones.
        cells: how many. median, p90: percent. in_range: share of measured medians in the predicted range.
    """

    metric: str
    noisy: bool
    cells: int
    median: float
    p90: float
    in_range: float


def cell_errors(cells: Sequence[SweptCell]) -> tuple[CellErrors, ...]:
    """The errors by metric, quiet cells first; cells without numbers are left out."""
    found = []
    for noisy in (False, True):
        kept = [swept for swept in cells if swept.samples and bool(swept.noisy) == noisy]
        if kept:
            found += [_errors(metric, kept, noisy=noisy) for metric in METRICS]
    return tuple(found)


def percent_errors(metric: str, cells: Sequence[SweptCell]) -> list[float]:
    """The errors of all cells that have numbers, quiet or not."""
    return [100 * abs(error) for swept in cells if (error := swept.error(metric)) is not None]


def _errors(metric: str, cells: Sequence[SweptCell], *, noisy: bool) -> CellErrors:
    percent = percent_errors(metric, cells)
    return CellErrors(
        metric=metric,
        noisy=noisy,
        cells=len(cells),
        median=float(np.median(percent)),
        p90=float(np.percentile(percent, 90)),
        in_range=float(np.mean([swept.is_in_range(metric) for swept in cells])),
    )
