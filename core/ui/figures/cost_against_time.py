"""What a token costs against how long it takes: the front that nothing beats, and every chip's best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale, log_ticks
from core.units import format_seconds, significant

_WIDTH: Final = 560
_HEIGHT: Final = 284
_X: Final = (60, 550)
_Y: Final = (230, 28)
_MS: Final = 1e3
#: Room for the letters, which stand left of and below their dots, and for a dot at the other edge.
_LETTER: Final = 26
_EDGE: Final = 10
#: Least span of an axis, as a factor around its middle.
_LEAST: Final = 1.2
#: A limit that lies further from the slowest mark would only squeeze the picture.
_FAR: Final = 4.0
#: Letters stand at least this share of both axes together apart, which makes them seven at most.
_APART: Final = 1 / 3


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One deployment.

    Attributes:
        name: chips and formats in words. usd: of a million output tokens. tpot_s: for each token.
        letter: how it is called in the picture; empty where it has no place there.
    """

    name: str
    usd: float
    tpot_s: float
    letter: str = ""

    @property
    def hover(self) -> str:
        """It in words."""
        first = f"{self.letter}: " if self.letter else ""
        return f"{first}{self.name}, ${significant(self.usd)}, {format_seconds(self.tpot_s)} a token"


@redrawable
def cost_against_time(
    front: Sequence[CostPoint], others: Sequence[CostPoint], limit_s: float = math.inf
) -> Picture:
    """Draw both on log axes; time grows to the right, cost upwards.

    Args:
        front: from the cheapest to the fastest, one or more.
        others: what is beaten in one or in both.
        limit_s: the longest time for a token that was asked for; drawn where it is near.
    """
    every = [*front, *others]
    times, prices = [point.tpot_s for point in every], [point.usd for point in every]
    near = limit_s <= _FAR * max(times)
    x = _axis([*times, limit_s] if near else times, (_X[0] + _LETTER, _X[1] - _EDGE))
    y = _axis(prices, (_Y[0] - _LETTER, _Y[1] + _EDGE))
    drawing = Drawing(_WIDTH, _HEIGHT)
    _grid(drawing, x, y)
    if near:
        _limit(drawing, x(math.log10(limit_s)), limit_s)
    for point in others:
        _diamond(drawing, (x(math.log10(point.tpot_s)), y(math.log10(point.usd))), point.hover)
    _front(drawing, front, x, y)
    return Picture(
        title="What speed costs",
        drawing=drawing,
        alt=_alt(front, others),
        columns=("mark", "deployment", "$ per million tokens", "seconds a token", "on the front"),
        rows=[
            *((point.letter, point.name, point.usd, point.tpot_s, "yes") for point in front),
            *(("", point.name, point.usd, point.tpot_s, "no") for point in others),
        ],
        look_at=(
            "Nothing is both cheaper and faster than a dot on the line (the Pareto front); every step to the "
            "left buys speed. Hover a mark for its name."
        ),
        legend=_legend(front, others),
    )


def letters(points: Sequence[CostPoint]) -> tuple[str, ...]:
    """A letter for those of a front that lie far enough apart, the first and the last always among them.

    >>> letters([CostPoint("a", 1, 0.9), CostPoint("b", 1.01, 0.89), CostPoint("c", 9, 0.1)])
    ('A', '', 'B')
    """
    if not points:
        return ()
    x = _share([math.log10(point.tpot_s) for point in points])
    y = _share([math.log10(point.usd) for point in points])
    chosen = [0]
    for index in range(1, len(points)):
        if _distance(x, y, chosen[-1], index) >= _APART:
            chosen.append(index)
    last = len(points) - 1
    if last != chosen[-1]:
        chosen = [*(chosen[:-1] if len(chosen) > 1 else chosen), last]
    return tuple(chr(ord("A") + chosen.index(i)) if i in chosen else "" for i in range(len(points)))


def _share(values: Sequence[float]) -> list[float]:
    low, span = min(values), max(values) - min(values)
    return [(value - low) / span if span else 0.0 for value in values]


def _distance(x: Sequence[float], y: Sequence[float], first: int, second: int) -> float:
    return abs(x[first] - x[second]) + abs(y[first] - y[second])


def _axis(values: Sequence[float], ends: tuple[int, int]) -> Scale:
    """All values on a logarithmic axis, also where they are one."""
    middle = math.sqrt(min(values) * max(values))
    return Scale(math.log10(min(*values, middle / _LEAST)), math.log10(max(*values, middle * _LEAST)), *ends)


def _grid(drawing: Drawing, x: Scale, y: Scale) -> None:
    for value in log_ticks(x):
        at = x(math.log10(value))
        drawing.path([(at, _Y[0]), (at, _Y[1])], "thin line-grid")
        drawing.text(min(at, _X[1] - 12), _Y[0] + 22, f"{value * _MS:g}", "fill-muted", anchor="middle")
    for value in log_ticks(y):
        at = y(math.log10(value))
        drawing.path([(_X[0], at), (_X[1], at)], "thin line-grid")
        drawing.text(_X[0] - 7, at + 5, f"{value:g}", "fill-muted", anchor="end")
    drawing.text(sum(_X) / 2, _Y[0] + 47, "ms for each token (TPOT)", "fill-muted", anchor="middle")
    drawing.text(4, 16, "$ per million tokens", "fill-muted")


def _limit(drawing: Drawing, at: float, limit_s: float) -> None:
    drawing.path([(at, _Y[0]), (at, _Y[1])], "outline line-decode")
    words = f"at most {format_seconds(limit_s)}"
    drawing.text(at - 7, _Y[1] + 14, words, "fill-ink", anchor="end")


def _diamond(drawing: Drawing, at: tuple[float, float], hover: str) -> None:
    x, y = at
    corners = [(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y), (x, y - 5)]
    drawing.path(corners, "thin line-muted clear", hover=hover)


def _front(drawing: Drawing, front: Sequence[CostPoint], x: Scale, y: Scale) -> None:
    places = [(x(math.log10(point.tpot_s)), y(math.log10(point.usd))) for point in front]
    if len(places) > 1:
        drawing.path(places, "solid line-ink")
    for point, at in zip(front, places, strict=True):
        drawing.circle(*at, 5 if point.letter else 3, "fill-ink", hover=point.hover)
        if point.letter:  # below and left of a front lies nothing
            drawing.text(at[0] - 9, at[1] + 17, point.letter, "fill-ink strong", anchor="end")


def _legend(front: Sequence[CostPoint], others: Sequence[CostPoint]) -> tuple[Label, ...]:
    named = [
        Label(
            "fill-ink",
            f"{point.letter} {point.name}",
            f"${significant(point.usd)}, {format_seconds(point.tpot_s)}",
        )
        for point in front
        if point.letter
    ]
    rest = [Label("thin line-muted", "a chip's cheapest, where it is beaten")] if others else []
    return (*named, *rest)


def _alt(front: Sequence[CostPoint], others: Sequence[CostPoint]) -> str:
    cheap, fast = front[0], front[-1]
    ends = (
        f"cheapest {cheap.name} at ${significant(cheap.usd)} for a million tokens and "
        f"{format_seconds(cheap.tpot_s)} a token"
    )
    if len(front) > 1:
        ends += (
            f", fastest {fast.name} at ${significant(fast.usd)} and {format_seconds(fast.tpot_s)}, "
            f"{significant(fast.usd / cheap.usd)} times the cost"
        )
    return f"Cost against time, {len(front)} on the front and {len(others)} beaten: {ends}."
