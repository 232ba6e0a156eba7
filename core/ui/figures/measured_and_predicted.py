"""Every prediction against what was measured, on log axes: on the line they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.palette import MARKS
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale, log_ticks
from core.units import significant

_WIDTH: Final = 560
_X: Final = (66, 548)
_Y: Final = (392, 30)
_LEGEND: Final = 468
_LINE: Final = 25
_COLUMNS: Final = (16, 290)
_RADIUS: Final = 4.2
#: A mark answers to the pointer within this distance of its middle.
_REACH: Final = 6
#: Predictions off by this factor lie on the two outer lines.
_OFF: Final = 2.0
#: The shapes of marks: corners on a circle, where the first one lies in parts of a turn, and how far out
#: every second corner is: circle, square, diamond, triangle up, triangle down, star.
_SHAPES: Final = (
    (12, 0.0, 1.0),
    (4, 0.125, 1.0),
    (4, 0.0, 1.0),
    (3, 0.75, 1.0),
    (3, 0.25, 1.0),
    (8, 0.0, 0.35),
)
MOST_KINDS: Final = len(_SHAPES)

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """One measurement with its prediction, in one unit.

    Attributes:
        id: what a click on it stands for. name: what was measured, in words. kind: which mark it gets.
        low, high: the range of the prediction.
    """

    id: str
    name: str
    kind: str
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def in_range(self) -> bool:
        """Whether the measurement lies in the range."""
        return self.low <= self.measured <= self.high


@redrawable
def measured_and_predicted(
    points: Sequence[ScatterPoint], kinds: Sequence[str], title: str, unit: str, chosen: str = ""
) -> Picture:
    """Draw the marks, with the range of each as an upright line.

    Args:
        points: all numbers above zero; one or more.
        kinds: what the marks tell apart, ``MOST_KINDS`` at most; each keeps its mark whatever is shown.
        title: of the picture.
        unit: of every number, or words that say where it stands.
        chosen: the id of the mark that is ringed.
    """
    rows = math.ceil(len(kinds) / len(_COLUMNS))
    drawing = Drawing(_WIDTH, _LEGEND + rows * _LINE - 8)
    x, y = _axes(points)
    _grid(drawing, x, y, unit)
    _marks(drawing, points, kinds, (x, y))
    for point in points:
        _target(drawing, point, _place(point, x, y), chosen=point.id == chosen)
    return Picture(
        title=title,
        drawing=drawing,
        alt=_alt(points),
        columns=("what", "kind", "measured", "predicted", "range from", "range to", "in range"),
        rows=[
            (p.name, p.kind, p.measured, p.predicted, p.low, p.high, "yes" if p.in_range else "no")
            for p in points
        ],
        look_at=(
            "On the line the two agree; on the thin lines beside it they differ by a factor of two. An "
            "upright line is a prediction's range, which should hold four measurements in five."
        ),
    )


def _marks(
    drawing: Drawing, points: Sequence[ScatterPoint], kinds: Sequence[str], axes: tuple[Scale, Scale]
) -> None:
    """Ranges below, the marks of each kind as one shape above, and their names."""
    by_kind = [[point for point in points if point.kind == kind] for kind in kinds]
    for mine in filter(None, by_kind):
        _ranges(drawing, mine, axes)
    for number, (kind, mine) in enumerate(zip(kinds, by_kind, strict=True)):
        if mine:
            outlines = [_mark(_place(point, *axes), number) for point in mine]
            drawing.paths(outlines, f"fill-mark-{number}")
        _name(drawing, number, f"{kind} ({len(mine):,})")


def _target(drawing: Drawing, point: ScatterPoint, at: Place, *, chosen: bool) -> None:
    """What answers to the pointer around a mark, and the ring of the chosen one."""
    if chosen:
        drawing.circle(*at, 10, "solid line-ink clear")
    x, y, size = at[0] - _REACH, at[1] - _REACH, 2 * _REACH
    drawing.rectangle(x, y, size, size, "clear", hover=_hover(point), pick=point.id)


def _axes(points: Sequence[ScatterPoint]) -> tuple[Scale, Scale]:
    """The same powers of ten on both axes."""
    values = [value for point in points for value in (point.measured, point.predicted, point.low, point.high)]
    low, high = math.log10(min(values)) - 0.05, math.log10(max(values)) + 0.05
    if high - low < 1:  # a single point still has a frame
        middle = (low + high) / 2
        low, high = middle - 0.5, middle + 0.5
    return Scale(low, high, *_X), Scale(low, high, *_Y)


def _place(point: ScatterPoint, x: Scale, y: Scale) -> Place:
    return x(math.log10(point.measured)), y(math.log10(point.predicted))


def _grid(drawing: Drawing, x: Scale, y: Scale, unit: str) -> None:
    for value in log_ticks(x):
        at, up = x(math.log10(value)), y(math.log10(value))
        drawing.path([(at, _Y[0]), (at, _Y[1])], "thin line-grid")
        drawing.path([(_X[0], up), (_X[1], up)], "thin line-grid")
        drawing.text(min(at, _X[1] - 16), _Y[0] + 21, f"{value:,g}", "fill-muted", anchor="middle")
        drawing.text(_X[0] - 6, up + 5, f"{value:,g}", "fill-muted", anchor="end")
    for factor, style in ((1.0, "solid line-ink"), (_OFF, "thin line-muted"), (1 / _OFF, "thin line-muted")):
        shift = math.log10(factor)
        low, high = max(x.low, x.low - shift), min(x.high, x.high - shift)
        drawing.path([(x(low), y(low + shift)), (x(high), y(high + shift))], style)
    drawing.text(_X[0] + 10, _Y[1] + 18, "predicted too high", "fill-muted")
    drawing.text(_X[1] - 8, _Y[0] - 12, "predicted too low", "fill-muted", anchor="end")
    drawing.text(sum(_X) / 2, _Y[0] + 46, f"measured, {unit}", "fill-muted", anchor="middle")
    drawing.text(4, 16, f"predicted, {unit}", "fill-muted")


def _ranges(drawing: Drawing, points: Sequence[ScatterPoint], axes: tuple[Scale, Scale]) -> None:
    x, y = axes
    drawing.paths(
        [
            [
                (x(math.log10(p.measured)), y(math.log10(p.low))),
                (x(math.log10(p.measured)), y(math.log10(p.high))),
            ]
            for p in points
        ],
        "thin line-muted faint",
    )


def _mark(at: Place, number: int) -> list[Place]:
    """The outline of a kind's mark."""
    corners, first, waist = _SHAPES[number]
    size = _RADIUS if corners == 12 else _RADIUS + 1 if waist == 1 else _RADIUS + 2
    found = []
    for corner in range(corners + 1):
        turn = 2 * math.pi * (first + corner / corners)
        out = size * (waist if corner % 2 else 1.0)
        found.append((at[0] + out * math.cos(turn), at[1] + out * math.sin(turn)))
    return found


def _name(drawing: Drawing, number: int, words: str) -> None:
    """One entry of the legend: with the mark's shape, which a legend of colours alone would not show."""
    left = _COLUMNS[number % len(_COLUMNS)]
    line = _LEGEND + number // len(_COLUMNS) * _LINE
    drawing.path(_mark((left, line - 5), number), f"fill-{tuple(MARKS)[number]}")
    drawing.text(left + 12, line, words, "fill-ink")


def _hover(point: ScatterPoint) -> str:
    return (
        f"{point.name}: measured {significant(point.measured)}, predicted {significant(point.predicted)} "
        f"({significant(point.low)} to {significant(point.high)})"
    )


def _alt(points: Sequence[ScatterPoint]) -> str:
    inside = sum(point.in_range for point in points)
    near = sum(1 / _OFF <= point.predicted / point.measured <= _OFF for point in points)
    return (
        f"Predicted against measured for {len(points):,} measurements on log axes: {near:,} predictions are "
        f"within a factor of {_OFF:g}, and {inside:,} measurements lie in the range of their prediction."
    )
