"""Published measurements beside their predictions, as they were judged: each without its own source.

Judging takes half a minute, so ``python -m core validate --write`` keeps what it found in
``assets/judged_runs.csv``; a test judges again and holds the file against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from core.analytic.efficiency import QUANTITIES
from core.analytic.setting import FormatClass
from core.analytic.validation.judging import GROUPS, in_group
from core.analytic.validation.runs import Published, PublishedRun, published_runs
from core.catalog.assets import read_csv

#: The file of judged rows, in ``assets``.
JUDGED: Final = "judged_runs"
_FORMATS: Final[Mapping[str, FormatClass]] = {
    "16": "16",
    "w8": "w8",
    "q4": "q4",
    "packed4": "packed4",
    "fp8": "fp8",
    "fp4": "fp4",
}


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One published number beside its prediction.

    Attributes:
        run: what was published. predicted: the same metric, from a fit without this source.
        low, high: between them should lie 80 % of measurements.
        batch: sequences at once; where the row says "as many as fit", as many as were found to fit.
        format: how the weights are multiplied. groups: of ``judging.GROUPS``, which overlap.
        quantities: what the prediction was made with, by name, in the quantity's unit.
    """

    run: PublishedRun
    predicted: float
    low: float
    high: float
    batch: float
    format: FormatClass
    groups: tuple[str, ...]
    quantities: Mapping[str, float]

    @property
    def percent_error(self) -> float:
        """|predicted / measured - 1| in percent."""
        return 100 * abs(self.predicted / self.run.value - 1)

    @property
    def factor(self) -> float:
        """How many times the smaller of the two the larger is; what distances on log axes show.

        >>> from core.analytic.validation.judged import judged_runs
        >>> all(judged.factor >= 1 for judged in judged_runs())
        True
        """
        return math.exp(abs(math.log(self.predicted / self.run.value)))

    @property
    def in_range(self) -> bool:
        """Whether the measurement lies in the range."""
        return self.low <= self.run.value <= self.high


@cache
def published() -> Published:
    """The published measurements, read once."""
    return published_runs()


@cache
def judged_runs() -> tuple[JudgedRun, ...]:
    """Every published measurement that was judged, in the order of ``assets/benchmarks.csv``."""
    runs = {run.id: run for run in published().runs}
    return tuple(_judged(row, runs[row["id"]]) for row in read_csv(JUDGED) if row["id"] in runs)


def judged_on() -> str:
    """The day on which the rows were judged, as YYYY-MM-DD."""
    return read_csv(JUDGED)[0]["date"]


def _judged(row: Mapping[str, str], run: PublishedRun) -> JudgedRun:
    return JudgedRun(
        run=run,
        predicted=float(row["predicted"]),
        low=float(row["low"]),
        high=float(row["high"]),
        batch=float(row["batch"]),
        format=_FORMATS[row["format"]],
        groups=tuple(group for group in GROUPS if in_group(run, group)),
        quantities={name: float(row[name]) for name in QUANTITIES},
    )
