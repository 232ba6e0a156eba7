"""A chip's roof with every operator of a prefill and a decode step under it, and what each pass waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.lesson.quantities.roof_points import RoofPass, RoofPoint
from core.ui.figures.roof_axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    RoofAxes,
    draw_grid,
    draw_rates,
    draw_roof,
    roof_axes,
)
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.ui.words import operator_name
from core.units import format_seconds, format_si, significant

_BARS: Final = 300
_BAR: Final = 46
_END: Final = 4
#: Operators of one pass that are drawn: those that take longest.
_MOST_POINTS: Final = 6
#: Matrices whose FLOPs per byte differ by less than this factor lie together; where that holds for most
#: of their time, they have one word. (The head of a prefill sees a single token, and lies apart.)
_TOGETHER: Final = 3.0
_MOSTLY: Final = 0.7
#: Width of a letter and height of a line where letters are largest.
_LETTER: Final = 9.5
_LINE: Final = 20
#: Where a word may stand beside its mark: shift and anchor, the first that is free.
_PLACES: Final = (
    (12.0, 5.0, "start"),
    (-12.0, 5.0, "end"),
    (0.0, 27.0, "middle"),
    (8.0, 27.0, "start"),
    (-8.0, 27.0, "end"),
    (0.0, 50.0, "middle"),
    (0.0, -13.0, "middle"),
)
_WAITS: Final = (
    ("memory", "faint fill-ink", "waits for memory"),
    ("arithmetic", "fill-ink", "waits for arithmetic"),
    ("overhead", "fill-overhead", "fixed costs"),
)


@dataclass(frozen=True, slots=True)
class BatchMark:
    """The learner's batch, and the FLOPs a byte at which a weight matrix lies with it."""

    batch: float
    intensity: float


@redrawable
def bare_roof(peak_flops_per_s: float, bandwidth_bytes_per_s: float, chip: str) -> Picture:
    """Draw the roof alone; how far its corner lies along the axis stays open.

    Args:
        peak_flops_per_s: the flat part.
        bandwidth_bytes_per_s: the slope.
        chip: whose roof it is.
    """
    axes = roof_axes(peak_flops_per_s, bandwidth_bytes_per_s, [])
    drawing = Drawing(WIDTH, BOTTOM + 30)
    draw_rates(drawing, axes)
    draw_roof(drawing, axes)
    corner_x, corner_y = axes.at(axes.ridge, axes.peak_flops_per_s)
    drawing.path([(corner_x, corner_y), (corner_x, BOTTOM)], "thin line-muted")
    drawing.text(corner_x - 10, BOTTOM - 12, "waits for memory", "fill-muted", anchor="end")
    drawing.text(corner_x + 10, BOTTOM - 36, "for arithmetic", "fill-muted")
    drawing.text(
        (LEFT + RIGHT) / 2, BOTTOM + 22, "more FLOPs for each byte  →", "fill-muted", anchor="middle"
    )
    return Picture(
        title="The roof of the chip",
        drawing=drawing,
        alt=f"What {chip} allows: {format_si(bandwidth_bytes_per_s)}B/s times the FLOPs for each byte, up "
        f"to {format_si(peak_flops_per_s)}FLOP/s, which the roof's flat part shows.",
        columns=("limit", "value", "unit"),
        rows=[
            ("peak, dense", peak_flops_per_s, "FLOP/s"),
            ("memory bandwidth", bandwidth_bytes_per_s, "B/s"),
        ],
    )


@redrawable
def operator_roof(
    passes: Sequence[RoofPass],
    peak_flops_per_s: float,
    bandwidth_bytes_per_s: float,
    critical_batch: float,
    mark: BatchMark | None,
) -> Picture:
    """Draw the roof, a mark for each operator of both passes, and what each pass waits for.

    Args:
        passes: a prefill and a decode step.
        peak_flops_per_s: the flat part of the roof.
        bandwidth_bytes_per_s: its slope.
        critical_batch: tokens in a pass at which a weight matrix reaches the corner.
        mark: the learner's, if there is one.
    """
    shown = [(item, _longest(item)) for item in passes]
    every = [(p.intensity, p.flops_per_s) for _, points in shown for p in points]
    axes = roof_axes(peak_flops_per_s, bandwidth_bytes_per_s, every)
    drawing = Drawing(WIDTH, _BARS + _BAR * len(passes))
    draw_grid(drawing, axes)
    draw_roof(drawing, axes)
    _corner(drawing, axes, critical_batch)
    if mark is not None:
        _said(drawing, axes, mark)
    for item, points in shown:
        for point in points:
            _dot(drawing, axes, item, point)
    _words(drawing, axes, passes)
    _key(drawing)
    for index, item in enumerate(passes):
        _bar(drawing, item, _BARS + index * _BAR)
    return Picture(
        title="Under the roof",
        drawing=drawing,
        alt=_alt(passes, axes, mark),
        columns=("pass", "operator", "FLOPs", "bytes", "FLOPs per byte", "predicted s", "FLOP/s"),
        rows=[
            (item.phase, operator_name(p.name), p.flops, p.bytes, p.intensity, p.time_s, p.flops_per_s)
            for item in passes
            for p in item.points
        ],
        legend=tuple(Label(style, words) for _, style, words in _WAITS),
    )


def _longest(item: RoofPass) -> list[RoofPoint]:
    return sorted(item.points, key=lambda point: point.time_s, reverse=True)[:_MOST_POINTS]


def _corner(drawing: Drawing, axes: RoofAxes, critical_batch: float) -> None:
    x, y = axes.at(axes.ridge, axes.peak_flops_per_s)
    drawing.path([(x, y), (x, BOTTOM)], "thin line-muted")
    words = f"corner: {significant(axes.ridge)} FLOPs per byte, {critical_batch:,.0f} tokens"
    drawing.text(RIGHT, TOP - 14, words, "fill-ink", anchor="end")


def _said(drawing: Drawing, axes: RoofAxes, mark: BatchMark) -> None:
    """The learner's batch as a dashed line: predictions are never filled."""
    x = axes.at(mark.intensity, axes.peak_flops_per_s)[0]
    drawing.path([(x, TOP + 16), (x, BOTTOM)], "outline line-ink", hover=f"you: {mark.batch:,.0f} tokens")
    left = x > (LEFT + RIGHT) / 2
    words = f"you: {mark.batch:,.0f}"
    drawing.text(x - 6 if left else x + 6, BOTTOM - 8, words, "fill-ink", anchor="end" if left else "start")


def _dot(drawing: Drawing, axes: RoofAxes, item: RoofPass, point: RoofPoint) -> None:
    """A disc for the prefill, a square for decode: told apart by shape too."""
    x, y = axes.at(point.intensity, point.flops_per_s)
    hover = (
        f"{item.phase}, {operator_name(point.name)}: {significant(point.intensity)} FLOPs per byte, "
        f"{format_si(point.flops_per_s)}FLOP/s, {format_seconds(point.time_s)}"
    )
    if item.phase == "decode":
        drawing.rectangle(x - 6, y - 6, 12, 12, "fill-decode", hover=hover)
    else:
        drawing.circle(x, y, 6.5, "fill-prefill", hover=hover)


def _words(drawing: Drawing, axes: RoofAxes, passes: Sequence[RoofPass]) -> None:
    """Name the matrices as one, and attention, where there is room beside them."""
    taken = [
        (x - 7, y - 7, x + 7, y + 7)
        for item in passes
        for p in _longest(item)
        for x, y in [axes.at(p.intensity, p.flops_per_s)]
    ]
    taken.append(_flat(axes))
    for item in passes:
        named = _named_matrices(item)
        named += [("attention", p) for p in item.points if p.kind == "attention"][:1]
        for words, point in named:
            x, y = axes.at(point.intensity, point.flops_per_s)
            _word(drawing, (x, y), words, taken)


def _named_matrices(item: RoofPass) -> list[tuple[str, RoofPoint]]:
    """The matrix that takes longest, under the name of all where they lie together."""
    found = [point for point in _longest(item) if point.kind == "linear"]
    if not found:
        return []
    first = found[0]
    near_s = sum(p.time_s for p in found if 1 / _TOGETHER <= p.intensity / first.intensity <= _TOGETHER)
    together = near_s >= _MOSTLY * sum(p.time_s for p in found)
    return [("matrices" if together else operator_name(first.name), first)]


def _flat(axes: RoofAxes) -> tuple[float, float, float, float]:
    """The flat part of the roof, and the words over it."""
    x, y = axes.at(axes.ridge, axes.peak_flops_per_s)
    return x, y - 26, RIGHT, y + 3


def _word(
    drawing: Drawing, at: tuple[float, float], words: str, taken: list[tuple[float, float, float, float]]
) -> None:
    """Put a word at the first free place beside a mark; none where every place is taken."""
    width = _LETTER * len(words)
    for shift_x, shift_y, anchor in _PLACES:
        x, y = at[0] + shift_x, at[1] + shift_y
        left = {"start": x, "end": x - width, "middle": x - width / 2}[anchor]
        box = (left, y - _LINE + 5, left + width, y + 5)
        inside = box[0] >= LEFT and box[2] <= RIGHT and box[1] >= TOP and box[3] <= BOTTOM
        if inside and not any(_meet(box, other) for other in taken):
            drawing.text(x, y, words, "fill-ink strong", anchor=anchor)
            taken.append(box)
            return


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _key(drawing: Drawing) -> None:
    x, y = RIGHT - 118, BOTTOM - 52
    drawing.rectangle(x, y, 12, 12, "fill-decode")
    drawing.text(x + 20, y + 11, "decode step", "fill-ink")
    drawing.circle(x + 6, y + 30, 6.5, "fill-prefill")
    drawing.text(x + 20, y + 35, "prefill", "fill-ink")


def _bar(drawing: Drawing, item: RoofPass, y: float) -> None:
    """What a pass waits for, as parts of its time."""
    name = "decode step" if item.phase == "decode" else "prefill"
    drawing.text(_END, y + 15, f"{name}: {format_seconds(item.time_s)}", "fill-ink strong")
    scale, at = Scale(0, 1, _END, WIDTH - _END), 0.0
    largest = max(getattr(item.shares, part) for part, _, _ in _WAITS)
    for part, style, words in _WAITS:
        share = getattr(item.shares, part)
        start, end = scale(at), scale(at + share)
        drawing.rectangle(start, y + 21, end - start, 14, style, hover=f"{name} {words}: {share:.0%}")
        if share == largest:
            drawing.text(WIDTH - _END, y + 15, f"{share:.0%} {words}", "fill-ink", anchor="end")
        at += share


def _alt(passes: Sequence[RoofPass], axes: RoofAxes, mark: BatchMark | None) -> str:
    sides = []
    for item in passes:
        if item.matrices.flops:
            intensity = item.matrices.intensity
            side = "memory" if intensity < axes.ridge else "arithmetic"
            sides.append(
                f"the matrices of the {item.phase} do {significant(intensity)} FLOPs per byte and wait for "
                f"{side}"
            )
    said = f" You said a batch of {mark.batch:,.0f}." if mark else ""
    return f"The corner lies at {significant(axes.ridge)} FLOPs per byte: {'; '.join(sides)}.{said}"
