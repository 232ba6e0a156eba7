"""The tensor that page 12 rounds: 4,096 normal numbers and an outlier, by the granularity that is set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.lab.quality_tensor import GridRecord
from core.lesson.amount import LessonCase
from core.numerics.error import mean_square_error
from core.numerics.histogram import Histogram
from core.numerics.outlier import PLACE, outlier_tensor
from core.numerics.quantise import Granularity, Quantised, Scheme, quantise

#: What may share a grid, as a page calls it.
SHARED: Final[dict[str, tuple[Granularity, int]]] = {
    "all numbers": ("tensor", 1),
    "each row": ("row", 1),
    "groups of 128": ("group", 128),
    "groups of 64": ("group", 64),
    "groups of 32": ("group", 32),
}
#: What the others are compared with.
BASE: Final = "groups of 128"
BITS: Final = {"8 bits": 8, "4 bits": 4}
#: The picture shows the numbers this far to both sides of 0, in deviations.
VIEW: Final = 4.0
_BINS: Final = 64


@dataclass(frozen=True, slots=True)
class Setting:
    """How the tensor is made and rounded."""

    shared: str
    bits: int
    symmetric: bool
    outlier: float

    def scheme(self, shared: str | None = None, bits: int | None = None) -> Scheme:
        """Its rounding, with another granularity or other bits where they are given."""
        granularity, group = SHARED[shared or self.shared]
        return Scheme(bits or self.bits, granularity, group, self.symmetric)


def setting(case: LessonCase) -> Setting:
    """What the page's controls say."""
    return Setting(
        case.word("shared"), BITS[case.word("bits")], bool(case.settings["symmetric"]), case.number("outlier")
    )


@cache
def rounded(shared: str, bits: int, symmetric: bool, outlier: float) -> Quantised:
    """The tensor, rounded."""
    return quantise(outlier_tensor(outlier), Setting(shared, bits, symmetric, outlier).scheme())


def found(now: Setting, shared: str | None = None, bits: int | None = None) -> Quantised:
    """The tensor of a setting, rounded as it says or otherwise."""
    return rounded(shared or now.shared, bits or now.bits, now.symmetric, now.outlier)


def error(now: Setting, shared: str | None = None, bits: int | None = None) -> float:
    """Mean-square error of all numbers, in squares of their deviation."""
    return mean_square_error(outlier_tensor(now.outlier), found(now, shared, bits).dense())


def place(now: Setting) -> tuple[int, int]:
    """Row and group of the grid that the outlier is in; of the widest grid where there is none."""
    scale = found(now).scale
    if not now.outlier:
        row, group = np.unravel_index(int(scale.argmax()), scale.shape)
        return int(row), int(group)
    width = now.scheme().width(outlier_tensor(0.0).shape[1])
    return PLACE[0], PLACE[1] // width


def grids(now: Setting) -> list[GridRecord]:
    """The grid of the outlier, and the finest other one where there is another."""
    scale = found(now).scale
    shown = [("grid of the outlier" if now.outlier else "widest grid", place(now))]
    if now.shared == "all numbers":
        shown = [("the one grid", (0, 0))]
    else:
        row, group = np.unravel_index(int(scale.argmin()), scale.shape)
        shown.append(("finest grid", (int(row), int(group))))
    return [_grid(found(now), name, where) for name, where in shown]


def _grid(quantised: Quantised, name: str, where: tuple[int, int]) -> GridRecord:
    levels = quantised.grid(*where)
    return GridRecord(name, float(levels[0]), float(quantised.scale[where]), len(levels))


def view(now: Setting) -> Histogram:
    """Counts of the numbers within the view, the outlier left out."""
    values = outlier_tensor(now.outlier)
    counts, _ = np.histogram(values[np.abs(values) <= VIEW], bins=_BINS, range=(-VIEW, VIEW))
    return Histogram(-VIEW, VIEW, tuple(int(count) for count in counts))


def block_errors(now: Setting, block: int = 32) -> NDArray[np.float64]:
    """Mean-square error of each block of a row, [rows, columns / block]."""
    values = outlier_tensor(now.outlier).astype(np.float64)
    squares = (values - found(now).dense()) ** 2
    means: NDArray[np.float64] = squares.reshape(values.shape[0], -1, block).mean(axis=2)
    return means


def ends(now: Setting) -> tuple[float, float]:
    """Least and largest error of a block over all granularities."""
    every = np.concatenate([block_errors(replace(now, shared=shared)).ravel() for shared in SHARED])
    return float(every[every > 0].min()), float(every.max())
