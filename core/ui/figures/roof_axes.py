"""The axes of a roofline and the roof itself, shared by the pictures that put marks under one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.analytic.roofline import attainable_flops_per_s, ridge_flops_per_byte
from core.ui.svg import Drawing, Scale
from core.units import format_gb, format_si, significant

WIDTH: Final = 560
LEFT: Final = 78
RIGHT: Final = 548
TOP: Final = 30
BOTTOM: Final = 240
#: Room between the lowest mark and the axis, and above the roof, as factors.
_FLOOR: Final = 2.5
_CEILING: Final = 2.5


@dataclass(frozen=True, slots=True)
class RoofAxes:
    """Two logarithmic axes around a roof.

    Attributes:
        x, y: of powers of ten. peak_flops_per_s: the flat part. bandwidth_bytes_per_s: the slope.
    """

    x: Scale
    y: Scale
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float

    @property
    def ridge(self) -> float:
        """FLOPs a byte at the corner."""
        return ridge_flops_per_byte(self.peak_flops_per_s, self.bandwidth_bytes_per_s)

    def at(self, intensity: float, flops_per_s: float) -> tuple[float, float]:
        """The place of a mark; one that lies outside is put at the edge."""
        return self.x(math.log10(intensity)), self.y(math.log10(flops_per_s))

    def roof(self, intensity: float) -> float:
        """The best rate at an intensity."""
        return float(attainable_flops_per_s(intensity, self.peak_flops_per_s, self.bandwidth_bytes_per_s))


def roof_axes(
    peak_flops_per_s: float, bandwidth_bytes_per_s: float, marks: Sequence[tuple[float, float]]
) -> RoofAxes:
    """Whole powers of ten around the roof's corner and all marks.

    Args:
        peak_flops_per_s: the flat part of the roof.
        bandwidth_bytes_per_s: its slope.
        marks: intensity and rate of each.
    """
    ridge = ridge_flops_per_byte(peak_flops_per_s, bandwidth_bytes_per_s)
    intensities = [ridge, *(mark[0] for mark in marks)]
    low = math.floor(math.log10(min(min(intensities) / 2, ridge / 100)))
    high = math.ceil(math.log10(max(max(intensities) * 2, ridge * 10)))
    rates = [10.0**low * bandwidth_bytes_per_s, *(mark[1] for mark in marks)]
    return RoofAxes(
        Scale(low, high, LEFT, RIGHT),
        Scale(math.log10(min(rates) / _FLOOR), math.log10(peak_flops_per_s * _CEILING), BOTTOM, TOP),
        peak_flops_per_s,
        bandwidth_bytes_per_s,
    )


def draw_grid(drawing: Drawing, axes: RoofAxes) -> None:
    """Lines and numbers at the powers of ten of both axes."""
    span = int(axes.x.high - axes.x.low)
    every = max(1, round(span / 6))
    for power in range(int(axes.x.low), int(axes.x.high) + 1):
        x = axes.x(power)
        drawing.path([(x, TOP), (x, BOTTOM)], "thin line-grid")
        if (power - int(axes.x.low)) % every == 0:
            anchor = "end" if x > RIGHT - 20 else "middle"
            drawing.text(x, BOTTOM + 22, significant(10.0**power, 1), "fill-muted", anchor=anchor)
    draw_rates(drawing, axes)
    drawing.text((LEFT + RIGHT) / 2, BOTTOM + 46, "FLOPs per byte moved", "fill-muted", anchor="middle")


def draw_rates(drawing: Drawing, axes: RoofAxes) -> None:
    """Lines and numbers of the upright axis alone."""
    for power in range(math.ceil(axes.y.low), math.floor(axes.y.high) + 1):
        y = axes.y(power)
        drawing.path([(LEFT, y), (RIGHT, y)], "thin line-grid")
        value, _, prefix = format_si(10.0**power).partition(" ")
        drawing.text(LEFT - 7, y + 5, f"{float(value):g} {prefix}".strip(), "fill-muted", anchor="end")
    drawing.text(4, 18, "FLOP/s", "fill-muted")


def draw_roof(drawing: Drawing, axes: RoofAxes) -> None:
    """The slope and the flat part, with what each is."""
    ends = (10.0**axes.x.low, axes.ridge, 10.0**axes.x.high)
    points = [axes.at(intensity, axes.roof(intensity)) for intensity in ends]
    drawing.path(points, "solid line-ink", hover="the best that the chip allows")
    corner_x, corner_y = points[1]
    peak, slope = format_si(axes.peak_flops_per_s), format_gb(axes.bandwidth_bytes_per_s)
    drawing.text(RIGHT, corner_y - 9, f"{peak}FLOP/s", "fill-ink strong", anchor="end")
    middle = (points[0][0] + corner_x) / 2
    drawing.text(middle - 14, (points[0][1] + corner_y) / 2, f"{slope}/s", "fill-ink strong", anchor="end")
