"""Numbers made ready for a picture: windows over a run, and the rows with the largest gaps.

Nothing here knows the model or the machine; these are orderings and percentiles of numbers that
``core.lab`` predicted or measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: No picture shows more than this many things.
MOST_THINGS: Final = 7
#: The part of a row that sums several operators.
MIXED: Final = "muted"
_MOST_WINDOWS: Final = 16
_FEWEST_IN_WINDOW: Final = 4


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring steps as one: where they lie, their median, and their 10th and 90th percentile."""

    first: int
    last: int
    median: float
    low: float
    high: float

    @property
    def middle(self) -> float:
        """The position of the window's centre."""
        return (self.first + self.last) / 2


def windows(values: NDArray[np.float64]) -> list[Window]:
    """Split a run into at most 16 windows of at least 4 steps and summarise each."""
    count = min(max(len(values) // _FEWEST_IN_WINDOW, 1), _MOST_WINDOWS)
    found = []
    for part in np.array_split(np.arange(len(values)), count):
        if part.size:
            low, median, high = np.percentile(values[part], (10, 50, 90))
            found.append(Window(int(part[0]), int(part[-1]), float(median), float(low), float(high)))
    return found


@dataclass(frozen=True, slots=True)
class Gap:
    """One operator, predicted beside measured, in seconds of one pass; measured is None before a run."""

    name: str
    part: str
    predicted_s: float
    measured_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None

    @property
    def ratio(self) -> float | None:
        """Measured over predicted; None before a run, or where nothing was predicted."""
        if self.measured_s is None or self.predicted_s <= 0:
            return None
        return self.measured_s / self.predicted_s

    @property
    def gap_s(self) -> float | None:
        """Measured - predicted; None before a run."""
        return None if self.measured_s is None else self.measured_s - self.predicted_s

    @property
    def size_s(self) -> float:
        """What rows are sorted by: the size of the gap, or the prediction while there is none."""
        return self.predicted_s if self.gap_s is None else abs(self.gap_s)


def largest_gaps(rows: Sequence[Gap], most: int = MOST_THINGS) -> list[Gap]:
    """The rows with the largest gaps first; those that do not fit are summed in a last row.

    The sum of the medians stands for the median of the sum, which holds for what is small anyway.
    """
    ordered = sorted(rows, key=lambda row: row.size_s, reverse=True)
    if len(ordered) <= most:
        return ordered
    shown, rest = ordered[: most - 1], ordered[most - 1 :]
    return [*shown, _together(rest)]


def in_order(rows: Sequence[Gap], most: int = MOST_THINGS) -> list[Gap]:
    """The same rows as ``largest_gaps`` has, in the order in which they came; the sum of the others is last.

    >>> [row.name for row in in_order([Gap("b", "kv", 1), Gap("a", "kv", 2), Gap("c", "kv", 3)], most=2)]
    ['c', '2 others']
    """
    shown = largest_gaps(rows, most)
    places = {row.name: place for place, row in enumerate(rows)}
    return sorted(shown, key=lambda row: places.get(row.name, len(rows)))


def gap_shares(rows: Sequence[Gap]) -> list[float | None]:
    """What each row adds to the gap of all, as a part of it; below 0 where it makes up for others.

    None for all where something was not measured, or where there is no gap.

    >>> gap_shares([Gap("a", "kv", 1.0, 4.0), Gap("b", "kv", 2.0, 1.0)])
    [1.5, -0.5]
    """
    gaps = [row.gap_s for row in rows]
    whole = sum(gap for gap in gaps if gap is not None)
    if None in gaps or not whole:
        return [None] * len(rows)
    return [None if gap is None else gap / whole for gap in gaps]


def _together(rows: Sequence[Gap]) -> Gap:
    def total(name: str) -> float | None:
        values = [getattr(row, name) for row in rows]
        return None if None in values else float(sum(values))

    return Gap(
        name=f"{len(rows)} others",
        part=MIXED,
        predicted_s=float(sum(row.predicted_s for row in rows)),
        measured_s=total("measured_s"),
        low_s=total("low_s"),
        high_s=total("high_s"),
    )
