"""Every chip as a dot: its bandwidth across, its dense arithmetic up, and the chosen ones by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.units import significant

_WIDTH: Final = 560
_HEIGHT: Final = 360
_X: Final = (58, 548)
_Y: Final = (310, 16)
#: Corners of the roofline that are drawn as lines, in FLOPs a byte.
_CORNERS: Final = (10, 100, 1000)
_LINE: Final = 20


@dataclass(frozen=True, slots=True)
class ChipDot:
    """A chip's place: bandwidth in GB/s, dense TFLOP/s, and whether it is announced or chosen.

    Attributes:
        measured: it is a computer by what it reaches, not a data sheet.
    """

    name: str
    bandwidth: float
    peak: float
    announced: bool
    chosen: bool
    measured: bool = False


@redrawable
def chip_map(dots: Sequence[ChipDot]) -> Picture:
    """Draw all dots; chosen ones are dark and named, announced ones are rings, measured ones squares.

    Args:
        dots: with a bandwidth and a peak above zero.
    """
    x = _axis([dot.bandwidth for dot in dots], _X)
    y = _axis([dot.peak for dot in dots], _Y)
    drawing = Drawing(_WIDTH, _HEIGHT)
    _grid(drawing, x, y)
    taken: list[tuple[float, float]] = []
    for dot in sorted(dots, key=lambda dot: dot.chosen):
        _dot(drawing, dot, (x(math.log10(dot.bandwidth)), y(math.log10(dot.peak))), taken)
    chosen = [dot for dot in dots if dot.chosen]
    said = "; ".join(
        f"{dot.name} {significant(dot.bandwidth)} GB/s and {significant(dot.peak)} TFLOP/s" for dot in chosen
    )
    return Picture(
        title="Every chip by bandwidth and dense arithmetic of 16 bits",
        drawing=drawing,
        alt=f"{len(dots)} chips on log axes; arithmetic rises a little faster than bandwidth, so that newer "
        f"chips have their corner at more FLOPs a byte. Chosen: {said or 'none'}.",
        columns=("chip", "bandwidth, GB/s", "TFLOP/s", "FLOP/B", "announced"),
        rows=[
            (dot.name, dot.bandwidth, dot.peak, 1e3 * dot.peak / dot.bandwidth, _yes(dot.announced))
            for dot in dots
        ],
        look_at="Dots on one slanted line have their corner at the same FLOPs a byte. Hover for a name.",
        legend=(
            Label("fill-ink", "chosen"),
            Label("faint fill-decode", "a chip of the catalogue"),
            Label("outline line-decode", "announced"),
            *((Label("fill-activations", "measured"),) if any(dot.measured for dot in dots) else ()),
        ),
    )


def _yes(announced: bool) -> str:
    return "yes" if announced else "no"


def _axis(values: Sequence[float], ends: tuple[int, int]) -> Scale:
    logs = [math.log10(value) for value in values]
    return Scale(math.floor(min(logs)), math.ceil(max(logs)), *ends)


def _grid(drawing: Drawing, x: Scale, y: Scale) -> None:
    for power in range(int(x.low), int(x.high) + 1):
        drawing.path([(x(power), _Y[0]), (x(power), _Y[1])], "thin line-grid")
        drawing.text(x(power), _Y[0] + 20, f"{10.0**power:,g}", "fill-muted", anchor=_anchor(power, x))
    for power in range(int(y.low), int(y.high) + 1):
        drawing.path([(_X[0], y(power)), (_X[1], y(power))], "thin line-grid")
        drawing.text(_X[0] - 6, y(power) + 5, f"{10.0**power:,g}", "fill-muted", anchor="end")
    drawing.text(sum(_X) / 2, _Y[0] + 42, "bandwidth, GB/s", "fill-muted", anchor="middle")
    drawing.text(_X[0] + 6, _Y[1] + 12, "TFLOP/s", "fill-muted")
    for corner in _CORNERS:
        _corner(drawing, x, y, corner)


def _anchor(power: int, x: Scale) -> str:
    return "end" if power == x.high else "middle"


def _corner(drawing: Drawing, x: Scale, y: Scale, corner: int) -> None:
    """A line of equal FLOPs a byte: ``log peak = log bandwidth + log(corner / 1000)``, cut to the plot."""
    shift = math.log10(corner / 1000)
    low, high = max(x.low, y.low - shift), min(x.high, y.high - shift)
    if low >= high:
        return
    drawing.path([(x(low), y(low + shift)), (x(high), y(high + shift))], "thin line-muted")
    at = high - 0.06 * (x.high - x.low)
    drawing.text(x(at), y(at + shift) - 8, f"{corner:,} FLOP/B", "fill-muted", anchor="end")


def _dot(drawing: Drawing, dot: ChipDot, at: tuple[float, float], taken: list[tuple[float, float]]) -> None:
    hover = f"{dot.name}: {significant(dot.bandwidth)} GB/s, {significant(dot.peak)} TFLOP/s"
    ring = "solid line-ink" if dot.chosen else "outline line-decode"
    style = ring if dot.announced else "fill-ink" if dot.chosen else "faint fill-decode"
    x, y = at
    if dot.measured:
        drawing.rectangle(x - 6, y - 6, 12, 12, "fill-activations", hover=f"measured: {hover}")
    else:
        drawing.circle(x, y, 6 if dot.chosen else 5, style, hover=hover)
    if not dot.chosen:
        return
    line = y + 5
    while any(abs(line - other) < _LINE and abs(x - near) < 200 for near, other in taken):
        line += _LINE
    taken.append((x, line))
    left = x > (_X[0] + _X[1]) / 2
    drawing.text(
        x - 10 if left else x + 10, line, dot.name, "fill-ink strong", anchor="end" if left else "start"
    )
