"""What fewer bytes bring and cost: tokens a second against bytes, and beside each mark what it loses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.palette import MARKS
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale, log_ticks
from core.ui.table import Blank, Cell
from core.units import MB, format_gb, significant

_WIDTH: Final = 560
_HEIGHT: Final = 344
_X: Final = (70, 536)
_Y: Final = (284, 40)
_FILL: Final = f"fill-{next(iter(MARKS))}"
_COLUMNS: Final = (
    "settings",
    "MB",
    "tokens/s",
    "KL, thousandths of a nat",
    "top-1, %",
    "perplexity",
    "on the front",
)
#: Words whose middles lie closer than this would touch.
_CLOSE: Final = 19.0


@dataclass(frozen=True, slots=True)
class SpeedPoint:
    """One pair of formats on one model.

    Attributes:
        name: the settings. num_bytes: of weights and cache. rate: measured tokens/s, all requests together.
        loss: mean divergence from fp32, thousandths of a nat; None where nobody judged it.
        agreement: part of the positions with the same likeliest token; None likewise.
        perplexity: on the shipped text; None likewise.
    """

    name: str
    num_bytes: float
    rate: float
    loss: float | None = None
    agreement: float | None = None
    perplexity: float | None = None


@redrawable
def speed_by_bytes(points: Sequence[SpeedPoint]) -> Picture:
    """Draw each pair of formats, and a line through those that no other beats in both.

    Args:
        points: one or more.
    """
    x = _axis([point.num_bytes for point in points], _X)
    y = _axis([point.rate for point in points], _Y)
    drawing = Drawing(_WIDTH, _HEIGHT)
    _grid(drawing, x, y)
    line = [(x(math.log10(p.num_bytes)), y(math.log10(p.rate))) for p in front(points)]
    if len(line) > 1:
        drawing.path(line, "outline line-ink")
    for point in points:
        at = x(math.log10(point.num_bytes)), y(math.log10(point.rate))
        drawing.circle(*at, 6, _FILL, hover=f"{point.name}: {_words(point)}")
    _names(drawing, points, x, y)
    return Picture(
        title="Bytes, speed and quality",
        drawing=drawing,
        alt="Tokens a second against bytes: " + "; ".join(f"{p.name}, {_words(p)}" for p in points) + ".",
        columns=_COLUMNS,
        rows=[_row(point, points) for point in points],
        look_at=(
            "Further left is smaller, higher is faster. Nothing is both smaller and faster than a mark on "
            "the line. A number at a mark is its divergence from fp32 in thousandths of a nat, where judged."
        ),
    )


def front(points: Sequence[SpeedPoint]) -> list[SpeedPoint]:
    """Those that no other beats in bytes and speed, from the smallest to the largest.

    >>> a, b, c = SpeedPoint("a", 1, 9), SpeedPoint("b", 2, 8), SpeedPoint("c", 3, 10)
    >>> [point.name for point in front([a, b, c])]
    ['a', 'c']
    """
    kept: list[SpeedPoint] = []
    for point in sorted(points, key=lambda p: (p.num_bytes, -p.rate)):
        if not kept or point.rate > kept[-1].rate:
            kept.append(point)
    return kept


def _axis(values: Sequence[float], ends: tuple[int, int]) -> Scale:
    low, high = math.log10(min(values)), math.log10(max(values))
    room = max(0.08 * (high - low), 0.12)
    return Scale(low - room, high + room, *ends)


def _grid(drawing: Drawing, x: Scale, y: Scale) -> None:
    for value in log_ticks(x):
        at = x(math.log10(value))
        drawing.path([(at, _Y[0]), (at, _Y[1])], "thin line-grid")
        drawing.text(at, _Y[0] + 20, f"{value / MB:g}", "fill-muted", anchor="middle")
    for value in log_ticks(y):
        at = y(math.log10(value))
        drawing.path([(_X[0], at), (_X[1], at)], "thin line-grid")
        drawing.text(_X[0] - 8, at + 5, f"{value:g}", "fill-muted", anchor="end")
    drawing.text(sum(_X) / 2, _Y[0] + 46, "weights and cache, MB", "fill-muted", anchor="middle")
    drawing.text(4, 18, "measured tokens/s", "fill-muted")


def _names(drawing: Drawing, points: Sequence[SpeedPoint], x: Scale, y: Scale) -> None:
    """A word at each mark, on its left in the right half; none on the line of another."""
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda p: -p.rate):
        left, at = x(math.log10(point.num_bytes)), y(math.log10(point.rate)) - 8
        while any(abs(left - other) < _WIDTH / 3 and abs(at - line) < _CLOSE for other, line in taken):
            at += _CLOSE
        taken.append((left, at))
        loss = "" if point.loss is None else f" ({significant(point.loss)})"
        right = left > sum(_X) / 2
        side, anchor = (-9, "end") if right else (9, "start")
        drawing.text(left + side, at, point.name + loss, "fill-ink", anchor=anchor)


def _words(point: SpeedPoint) -> str:
    said = f"{format_gb(point.num_bytes)}, {significant(point.rate)} tokens/s"
    if point.loss is not None:
        said += f", KL {significant(point.loss)} thousandths of a nat"
    return said


def _row(point: SpeedPoint, points: Sequence[SpeedPoint]) -> tuple[Cell, ...]:
    unknown = Blank.DOES_NOT_APPLY
    return (
        point.name,
        point.num_bytes / MB,
        point.rate,
        unknown if point.loss is None else point.loss,
        unknown if point.agreement is None else 100 * point.agreement,
        unknown if point.perplexity is None else point.perplexity,
        "yes" if point in front(points) else "no",
    )
