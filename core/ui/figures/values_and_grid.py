"""The numbers of a tensor as a histogram, and below it the levels that they are rounded to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from core.lab.quality_tensor import GridRecord
from core.numerics.histogram import Histogram
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.units import significant

_WIDTH: Final = 560
_LEFT: Final = 12
_RIGHT: Final = 548
_TOP: Final = 30
_BARS: Final = 150
_ROW: Final = 52
_TICK: Final = 16
#: Levels that lie closer than this are drawn as a band.
_DENSE: Final = 4.0
_LABELS: Final = 5


@redrawable
def values_and_grid(
    values: Histogram, grids: Sequence[GridRecord], title: str, *, outside: float | None = None
) -> Picture:
    """Draw the counts, and a row of levels for each grid on the same axis.

    Args:
        values: what is rounded.
        grids: one to three, each with its own step.
        title: what the numbers are.
        outside: a number that lies beyond the axis, said with an arrow; None where there is none.
    """
    axis = Scale(values.low, values.high, _LEFT, _RIGHT)
    drawing = Drawing(_WIDTH, _TOP + _BARS + 34 + _ROW * len(grids))
    drawing.text(_LEFT, 16, f"{sum(values.counts):,} numbers, by size", "fill-muted")
    _bars(drawing, values, axis)
    if outside is not None:
        drawing.text(_RIGHT, 16, f"one more at {significant(outside)} →", "fill-ink strong", anchor="end")
    for index, grid in enumerate(grids):
        _levels(drawing, grid, axis, _TOP + _BARS + 34 + _ROW * index)
    return Picture(
        title=title,
        drawing=drawing,
        alt=_alt(values, grids, outside),
        columns=("from", "to", "numbers"),
        rows=[
            (low, high, count)
            for low, high, count in zip(values.edges[:-1], values.edges[1:], values.counts, strict=True)
        ],
    )


def _bars(drawing: Drawing, values: Histogram, axis: Scale) -> None:
    most, edges = max(*values.counts, 1), values.edges
    bottom = _TOP + _BARS
    for low, high, count in zip(edges[:-1], edges[1:], values.counts, strict=True):
        if count:
            height = max(_BARS * count / most, 1.0)
            words = f"{significant(low)} to {significant(high)}: {count:,}"
            left, right = axis(low), axis(high)
            drawing.rectangle(
                left + 0.5, bottom - height, right - left - 1, height, "fill-weights", hover=words
            )
    drawing.path([(_LEFT, bottom), (_RIGHT, bottom)], "thin line-muted")
    step = ticks(values.high - values.low, _LABELS)[1]
    for index in range(math.ceil(values.low / step), math.floor(values.high / step) + 1):
        value = index * step
        x = min(max(axis(value), _LEFT + 8), _RIGHT - 8)
        drawing.text(x, bottom + 18, f"{value:.6g}", "fill-muted", anchor="middle")


def _levels(drawing: Drawing, grid: GridRecord, axis: Scale, top: float) -> None:
    drawing.text(_LEFT, top + 14, grid.name, "fill-ink strong")
    words = f"{grid.count} levels, {significant(grid.scale)} apart"
    drawing.text(_RIGHT, top + 14, words, "fill-ink", anchor="end")
    inside = _inside(grid, axis)
    pixels = grid.scale * (axis.end - axis.start) / (axis.high - axis.low)
    if not inside:
        return
    first, last = axis(inside[0]), axis(inside[-1])
    if pixels < _DENSE:
        drawing.rectangle(first, top + 20, max(last - first, 2), _TICK, "faint fill-decode", hover=words)
        return
    for value in inside:
        hover = f"level at {significant(value)}"
        drawing.rectangle(axis(value) - 1, top + 20, 2, _TICK, "fill-decode", hover=hover)


def _inside(grid: GridRecord, axis: Scale) -> list[float]:
    """The levels that lie on the axis."""
    levels = (grid.low + index * grid.scale for index in range(grid.count))
    return [level for level in levels if axis.low <= level <= axis.high]


def _alt(values: Histogram, grids: Sequence[GridRecord], outside: float | None) -> str:
    said = "; ".join(
        f"{grid.name}: {grid.count} levels {significant(grid.scale)} apart from {significant(grid.low)}"
        for grid in grids
    )
    beyond = "" if outside is None else f" One more lies at {significant(outside)}."
    return (
        f"{sum(values.counts):,} numbers between {significant(values.low)} and {significant(values.high)}."
        f"{beyond} Below them {said}."
    )
