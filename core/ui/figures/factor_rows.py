"""Rows on one log axis of factors: what is twice as much lies one step further, wherever it begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.svg import Drawing, Scale
from core.units import significant

WIDTH: Final = 560
_LEFT: Final = 6
_RIGHT: Final = 470  # behind it there is room for a factor
_ROW: Final = 46
_BAR: Final = 14
_TICKS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class FactorRow:
    """One row: its name and what stands at its end, its factor, and how its bar looks.

    Attributes:
        factor: None where it is not shown yet. style: of the bar; an outline is what a sheet says.
        mark: a second factor that the learner put there; None where there is none.
        strong: whether the row's name stands out.
    """

    name: str
    words: str
    factor: float | None
    style: str
    mark: float | None = None
    strong: bool = True


def factor_axis(factors: Sequence[float]) -> Scale:
    """A log axis (base 10) with 1 and all of the factors on it, its ends round."""
    low = max((tick for tick in _TICKS if tick <= min(1.0, *factors)), default=_TICKS[0])
    high = min((tick for tick in _TICKS if tick >= max(2.0, *factors)), default=_TICKS[-1])
    return Scale(math.log10(low), math.log10(high), _LEFT, _RIGHT)


def height(rows: Sequence[FactorRow]) -> int:
    """Of a drawing with these rows and their axis."""
    return _ROW * len(rows) + 34


def draw_rows(drawing: Drawing, rows: Sequence[FactorRow], axis: Scale) -> None:
    """Draw the axis and every row, from the top of the drawing."""
    bottom = _ROW * len(rows) + 6
    inside = [tick for tick in _TICKS if axis.low - 1e-9 <= math.log10(tick) <= axis.high + 1e-9]
    for tick in inside[:: math.ceil(len(inside) / _MOST_TICKS)]:
        x = axis(math.log10(tick))
        for index in range(len(rows)):  # beside the bars only, not through the words
            drawing.path([(x, _ROW * index + 24), (x, _ROW * index + 24 + _BAR)], "thin line-grid")
        anchor = "start" if x < _LEFT + 12 else "middle"
        drawing.text(x, bottom + 20, f"× {tick:g}", "fill-muted", anchor=anchor)
    for index, row in enumerate(rows):
        _draw_row(drawing, row, axis, _ROW * index)
    for index in range(len(rows)):
        top = _ROW * index + 24
        drawing.path([(axis(0.0), top - 1), (axis(0.0), top + _BAR + 1)], "solid line-muted")


def _draw_row(drawing: Drawing, row: FactorRow, axis: Scale, top: float) -> None:
    drawing.text(_LEFT, top + 17, row.name, "fill-ink strong" if row.strong else "fill-ink")
    drawing.text(WIDTH - 4, top + 17, row.words, "fill-ink", anchor="end")
    y, one = top + 24, axis(0.0)
    if row.factor is None:
        drawing.text(one + 8, y + 13, "?", "fill-ink strong")
    else:
        _bar(drawing, row, row.factor, axis, y)
    if row.mark is not None:
        x = axis(math.log10(row.mark))
        middle = y + _BAR / 2
        diamond = [(x, middle - 9), (x + 8, middle), (x, middle + 9), (x - 8, middle), (x, middle - 9)]
        drawing.path(diamond, "outline line-ink", hover=f"you: × {significant(row.mark)}")


def _bar(drawing: Drawing, row: FactorRow, factor: float, axis: Scale, y: float) -> None:
    one, end = axis(0.0), axis(math.log10(factor))
    left, right = min(one, end), max(one, end, min(one, end) + 1.5)
    hover = f"{row.name}: × {significant(factor)}"
    if row.style.startswith("outline"):
        frame = [(left, y), (right, y), (right, y + _BAR), (left, y + _BAR), (left, y)]
        drawing.path(frame, row.style, hover=hover)
    else:
        drawing.rectangle(left, y, right - left, _BAR, row.style, hover=hover)
    drawing.text(right + 8, y + 12, f"× {significant(factor)}", "fill-ink strong")
