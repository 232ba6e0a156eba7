"""How many times as fast a token comes with more chips: shared layers, stages in a row, and the ideal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.chip_plan import SpeedUp
from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.units import significant

_WIDTH: Final = 560
_X: Final = (52, 520)
_Y: Final = (216, 34)
_MARKS: Final = 282
#: The lowest factor that has a place, as a power of two: a pipeline may be a little slower than one chip.
_LOWEST: Final = -0.6
_HOLLOW: Final = Label("solid line-muted", "does not fit: worked out as if it did")


@redrawable
def chip_speed_up(tensor: Sequence[SpeedUp], pipeline: Sequence[SpeedUp], marks: Marks) -> Picture:
    """Draw both ways on log axes, the efficiency beside each point of the first.

    Args:
        tensor: chips that share every layer, the first of them one chip.
        pipeline: chips with layers of their own.
        marks: of the prediction.
    """
    drawing = Drawing(_WIDTH, _MARKS + HEIGHT)
    most = max(tensor[-1].chips, pipeline[-1].chips, 2)
    x = Scale(0, math.log2(most), *_X)
    y = Scale(_LOWEST, math.log2(most), *_Y)
    _axes(drawing, x, y, most)
    drawing.path([(x(0), y(0)), (x(math.log2(most)), y(math.log2(most)))], "outline line-muted")
    _line(drawing, pipeline, (x, y), "muted", "stages")
    _line(drawing, tensor, (x, y), "decode", "chips that share every layer")
    for point in tensor[1:]:
        at = (x(math.log2(point.chips)), y(math.log2(point.factor)))
        drawing.text(at[0] + 4, at[1] + 21, _efficiency(point), "fill-ink", anchor="middle")
    draw_marks(drawing, _MARKS, "speed-up in the question", marks)
    return Picture(
        title="A token with more chips",
        drawing=drawing,
        alt=_alt(tensor, pipeline) + marks.sentence,
        columns=("way", "chips", "seconds a token", "times as fast", "efficiency", "fits"),
        rows=[
            (way, point.chips, point.token_s, point.factor, point.efficiency, "yes" if point.fits else "no")
            for way, points in (("tensor", tensor), ("pipeline", pipeline))
            for point in points
        ],
        legend=(
            Label("fill-decode", "TP, with its efficiency"),
            Label("fill-muted", "PP"),
            Label("outline line-muted", "n chips, n times as fast"),
            *(() if all(point.fits for point in (*tensor, *pipeline)) else (_HOLLOW,)),
        ),
    )


def _axes(drawing: Drawing, x: Scale, y: Scale, most: int) -> None:
    for power in range(int(math.log2(most)) + 1):
        drawing.path([(_X[0], y(power)), (_X[1], y(power))], "thin line-grid")
        drawing.text(_X[0] - 8, y(power) + 5, f"{2**power}", "fill-muted", anchor="end")
        drawing.text(x(power), _Y[0] + 23, f"{2**power}", "fill-muted", anchor="middle")
    drawing.text(sum(_X) / 2, _Y[0] + 46, "chips", "fill-muted", anchor="middle")
    drawing.text(4, 14, "times as fast for each user", "fill-muted")


def _line(
    drawing: Drawing, points: Sequence[SpeedUp], axes: tuple[Scale, Scale], colour: str, words: str
) -> None:
    x, y = axes
    places = [(x(math.log2(point.chips)), y(math.log2(point.factor))) for point in points]
    if len(places) > 1:
        drawing.path(places, f"solid line-{colour}", hover=words)
    for point, place in zip(points, places, strict=True):
        hover = f"{point.chips} {words}: {significant(point.factor)} times as fast, {_efficiency(point)}"
        if point.fits:
            drawing.circle(*place, 5, f"fill-{colour}", hover=hover)
        else:
            drawing.circle(*place, 5, "fill-page")
            drawing.circle(*place, 5, f"solid line-{colour}", hover=f"{hover}, but it does not fit")


def _efficiency(point: SpeedUp) -> str:
    return f"{100 * point.efficiency:.0f} %"


def _alt(tensor: Sequence[SpeedUp], pipeline: Sequence[SpeedUp]) -> str:
    if len(tensor) == 1:
        return "This model and chip have no plan in which chips share layers."
    said = ", ".join(f"{point.chips} chips {significant(point.factor)} times" for point in tensor[1:])
    row = ""
    if len(pipeline) > 1:
        last = pipeline[-1]
        row = f" {last.chips} stages in a row: {significant(last.factor)} times."
    small = [point.chips for point in tensor if not point.fits]
    room = f" Fewer than {2 * small[-1]} chips do not hold it." if small else ""
    return f"With every layer shared, a token comes so many times as fast: {said}.{row}{room}"
