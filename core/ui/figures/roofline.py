"""The roofline of a chip, and where the passes of a scenario lie under it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.analytic.roofline import RoofMark, attainable_flops_per_s, ridge_flops_per_byte
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.ui.table import Blank
from core.units import format_seconds, format_si, significant

_WIDTH: Final = 560
_HEIGHT: Final = 300
_LEFT: Final = 78
_RIGHT: Final = 548
_TOP: Final = 30
_BOTTOM: Final = 240
#: Marks so close would share the place of their words; one word then goes a line lower.
_NEAR: Final = 90
_LINE: Final = 22
_NO: Final = Blank.DOES_NOT_APPLY
#: Room between the lowest mark and the axis, as a factor of its rate.
_FLOOR: Final = 2.5


@dataclass(frozen=True, slots=True)
class _Axes:
    x: Scale
    y: Scale

    def at(self, intensity: float, flops_per_s: float) -> tuple[float, float]:
        return self.x(math.log10(intensity)), self.y(math.log10(flops_per_s))


@redrawable
def roofline(
    passes: Sequence[RoofMark], peak_flops_per_s: float, bandwidth_bytes_per_s: float, format_name: str
) -> Picture:
    """Draw the roof and one mark a pass; both axes are logarithmic.

    Args:
        passes: what is marked.
        peak_flops_per_s: the flat part of the roof.
        bandwidth_bytes_per_s: the slope of the roof.
        format_name: the compute format that the peak is of.
    """
    ridge = ridge_flops_per_byte(peak_flops_per_s, bandwidth_bytes_per_s)
    axes = _axes_for(passes, ridge, peak_flops_per_s, bandwidth_bytes_per_s)
    drawing = Drawing(_WIDTH, _HEIGHT)
    _grid(drawing, axes)
    _roof(drawing, axes, ridge, peak_flops_per_s, bandwidth_bytes_per_s)
    taken: list[tuple[float, float]] = []
    for item in passes:
        x, y = axes.at(item.intensity, item.flops_per_s)
        near = any(abs(x - other) < _NEAR and abs(y - height) < _LINE for other, height in taken)
        _mark(drawing, item, (x, y), lower=_LINE if near else 0)
        taken.append((x, y))
    return Picture(
        title="Under the roof of the chip",
        drawing=drawing,
        alt=_alt(passes, ridge),
        columns=("what", "FLOPs", "bytes", "FLOPs per byte", "seconds", "FLOP/s"),
        rows=[
            *((p.name, p.flops, p.bytes, p.intensity, p.time_s, p.flops_per_s) for p in passes),
            (f"the roof's corner ({format_name})", _NO, _NO, ridge, _NO, peak_flops_per_s),
        ],
        look_at=(
            "Left of the corner a pass waits for memory, right of it for arithmetic. The gap up to the roof "
            "is what efficiency costs."
        ),
    )


def _axes_for(passes: Sequence[RoofMark], ridge: float, peak: float, bandwidth: float) -> _Axes:
    """Whole powers of ten around everything that is drawn."""
    intensities = [ridge, *(item.intensity for item in passes)]
    low = math.floor(math.log10(min(intensities) / 2))
    high = math.ceil(math.log10(max(intensities) * 2))
    bottom = min(float(attainable_flops_per_s(10.0**low, peak, bandwidth)), *(p.flops_per_s for p in passes))
    return _Axes(
        Scale(low, high, _LEFT, _RIGHT),
        Scale(math.log10(bottom / _FLOOR), math.log10(peak * 2), _BOTTOM, _TOP),
    )


def _grid(drawing: Drawing, axes: _Axes) -> None:
    every = max(1, round((axes.x.high - axes.x.low) / 6))
    for power in range(int(axes.x.low), int(axes.x.high) + 1):
        x = axes.x(power)
        drawing.path([(x, _TOP), (x, _BOTTOM)], "thin line-grid")
        if (power - int(axes.x.low)) % every == 0:
            drawing.text(x, _BOTTOM + 22, significant(10.0**power, 1), "fill-muted", anchor=_anchor(x))
    for power in range(math.ceil(axes.y.low), math.floor(axes.y.high) + 1):
        y = axes.y(power)
        drawing.path([(_LEFT, y), (_RIGHT, y)], "thin line-grid")
        drawing.text(_LEFT - 7, y + 5, _rate(10.0**power), "fill-muted", anchor="end")
    drawing.text((_LEFT + _RIGHT) / 2, _BOTTOM + 48, "FLOPs per byte moved", "fill-muted", anchor="middle")
    drawing.text(4, 18, "FLOP/s", "fill-muted")


def _anchor(x: float) -> str:
    return "end" if x > _RIGHT - 20 else "middle"


def _rate(flops_per_s: float) -> str:
    """A power of ten as an axis writes it: 1 T, 10 T, 1 P."""
    value, _, prefix = format_si(flops_per_s).partition(" ")
    return f"{float(value):g} {prefix}".strip()


def _roof(drawing: Drawing, axes: _Axes, ridge: float, peak: float, bandwidth: float) -> None:
    ends = (10.0**axes.x.low, ridge, 10.0**axes.x.high)
    points = [axes.at(i, float(attainable_flops_per_s(i, peak, bandwidth))) for i in ends]
    drawing.path(
        points, "solid line-ink", hover=f"the best the chip allows; its corner is at {significant(ridge)}"
    )
    corner_x, corner_y = points[1]
    drawing.path([(corner_x, corner_y), (corner_x, _BOTTOM)], "thin line-muted")
    anchor = "end" if corner_x > (_LEFT + _RIGHT) / 2 else "start"
    shift = -8 if anchor == "end" else 8
    drawing.text(corner_x + shift, corner_y - 9, f"corner at {significant(ridge)}", "fill-ink", anchor=anchor)
    drawing.text(corner_x - 8, _BOTTOM - 8, "waits for memory", "fill-muted", anchor="end")


def _mark(drawing: Drawing, item: RoofMark, at: tuple[float, float], *, lower: int) -> None:
    """A disc for the prefill, a square for decode: told apart by shape and word too."""
    x, y = at
    hover = (
        f"{item.name}: {significant(item.intensity)} FLOPs per byte, {format_si(item.flops_per_s)}FLOP/s, "
        f"{format_seconds(item.time_s)}"
    )
    if item.name == "decode":
        drawing.rectangle(x - 7, y - 7, 14, 14, "fill-decode", hover=hover)
    else:
        drawing.circle(x, y, 8, f"fill-{item.name}", hover=hover)
    if x > (_LEFT + _RIGHT) / 2:  # below it, clear of the corner's line
        drawing.text(x, y + 27 + lower, item.name, "fill-ink strong", anchor="middle")
    else:
        drawing.text(x + 13, y + 16 + lower, item.name, "fill-ink strong")


def _alt(passes: Sequence[RoofMark], ridge: float) -> str:
    places = []
    for item in passes:
        side = "memory" if item.intensity < ridge else "arithmetic"
        places.append(
            f"{item.name} does {significant(item.intensity)} FLOPs per byte, on the side that waits for "
            f"{side}"
        )
    return f"Roofline with its corner at {significant(ridge)} FLOPs per byte: {'; '.join(places)}."
