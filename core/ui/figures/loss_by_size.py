"""What fewer bytes cost: divergence from the reference against the part of its size that is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.ui.table import Cell
from core.units import significant

_WIDTH: Final = 560
_HEIGHT: Final = 330
_X: Final = (62, 536)
_Y: Final = (272, 34)
_TICKS: Final = (0.1, 0.2, 0.3, 0.4, 0.5)
_RANGE: Final = (0.08, 0.6)
#: Words at points whose middles lie closer than this would touch.
_CLOSE: Final = 20.0


@dataclass(frozen=True, slots=True)
class FormatPoint:
    """One format.

    Attributes:
        name: its id. of: "weights" or "cache", which it is the format of.
        part: of the bytes in fp32. loss: divergence in thousandths of a nat.
        rate: tokens/s; None where none was timed.
    """

    name: str
    of: str
    part: float
    loss: float
    rate: float | None


@redrawable
def loss_by_size(points: Sequence[FormatPoint]) -> Picture:
    """Draw each format, and a line through those of the weights that no other beats in both.

    Args:
        points: one or more, each with a loss above 0.
    """
    powers = [math.log10(point.loss) for point in points]
    y = Scale(math.floor(min(powers)), math.ceil(max(powers) + 1e-9), *_Y)
    x = Scale(*_RANGE, *_X)
    drawing = Drawing(_WIDTH, _HEIGHT)
    _grid(drawing, x, y)
    for of, style in (("weights", "outline line-weights"), ("cache", "outline line-kv")):
        line = [(x(point.part), y(math.log10(point.loss))) for point in front(points, of)]
        if len(line) > 1:
            drawing.path(line, style)
    for point in points:
        _mark(drawing, point, x(point.part), y(math.log10(point.loss)))
    for of in ("weights", "cache"):
        _names(drawing, [point for point in points if point.of == of], x, y)
    return Picture(
        title="What fewer bytes cost",
        drawing=drawing,
        alt=_alt(points),
        columns=(
            "format",
            "of",
            "part of the bytes in fp32",
            "KL, thousandths of a nat",
            "tokens/s",
            "on the front",
        ),
        rows=[_row(point, points) for point in points],
        look_at=(
            "Lower is nearer to the reference, further left is smaller. Nothing of its kind is both lower "
            "and further left than a mark on a line."
        ),
        legend=(Label("fill-weights", "weights, cache in fp32"), Label("fill-kv", "cache, weights in fp32")),
    )


def front(points: Sequence[FormatPoint], of: str) -> list[FormatPoint]:
    """Those that no other of their kind beats, from the smallest to the largest.

    >>> a, b, c = (FormatPoint(n, "weights", p, k, None) for n, p, k in (("a", 0.2, 9), ("b", 0.3, 10), ("c", 0.5, 1)))
    >>> [point.name for point in front([a, b, c], "weights")]
    ['a', 'c']
    """  # noqa: E501 (an example is one line)
    kept: list[FormatPoint] = []
    for point in sorted((p for p in points if p.of == of), key=lambda p: (p.part, p.loss)):
        if not kept or point.loss < kept[-1].loss:
            kept.append(point)
    return kept


def _grid(drawing: Drawing, x: Scale, y: Scale) -> None:
    for value in _TICKS:
        drawing.path([(x(value), _Y[0]), (x(value), _Y[1])], "thin line-grid")
        drawing.text(x(value), _Y[0] + 20, f"{value:.0%}", "fill-muted", anchor="middle")
    for power in range(int(y.low), int(y.high) + 1):
        drawing.path([(_X[0], y(power)), (_X[1], y(power))], "thin line-grid")
        drawing.text(_X[0] - 8, y(power) + 5, f"{10.0**power:g}", "fill-muted", anchor="end")
    drawing.text(sum(_X) / 2, _Y[0] + 44, "part of the bytes in fp32", "fill-muted", anchor="middle")
    drawing.text(4, 18, "KL from the reference, thousandths of a nat", "fill-muted")


def _mark(drawing: Drawing, point: FormatPoint, x: float, y: float) -> None:
    rate = "" if point.rate is None else f", {significant(point.rate)} tokens/s"
    lost = f"{significant(point.loss)} thousandths of a nat"
    hover = f"{point.name} {point.of}: {point.part:.0%} of the bytes, {lost}{rate}"
    if point.of == "weights":
        drawing.circle(x, y, 6, "fill-weights", hover=hover)
        return
    corners = [(x, y - 8), (x + 8, y), (x, y + 8), (x - 8, y), (x, y - 8)]
    drawing.path(corners, "fill-kv", hover=hover)


def _names(drawing: Drawing, points: Sequence[FormatPoint], x: Scale, y: Scale) -> None:
    """A word at each mark: above right of weights, below left of a cache; no two of a kind on one line."""
    last: dict[float, float] = {}
    for point in sorted(points, key=lambda p: p.loss, reverse=True):
        at, column = y(math.log10(point.loss)), round(point.part, 1)
        at = max(at, last.get(column, -_CLOSE) + _CLOSE)
        last[column] = at
        side, down, anchor = (9, -4, "start") if point.of == "weights" else (-9, 16, "end")
        drawing.text(x(point.part) + side, at + down, point.name, "fill-ink", anchor=anchor)


def _row(point: FormatPoint, points: Sequence[FormatPoint]) -> tuple[Cell, ...]:
    best = "yes" if point in front(points, point.of) else "no"
    return point.name, point.of, point.part, point.loss, point.rate, best


def _alt(points: Sequence[FormatPoint]) -> str:
    each = "; ".join(
        f"{point.name} {point.of} at {point.part:.0%} loses {significant(point.loss)}" for point in points
    )
    return f"Divergence from the reference in thousandths of a nat against the part of the bytes: {each}."
