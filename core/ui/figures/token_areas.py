"""What one token costs, as boxes whose area is FLOPs, parameters or bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.lesson.quantities.token_work import OperatorWork
from core.ui.figures.block_diagram import part_of
from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Label, Picture, redrawable
from core.ui.series import MOST_THINGS
from core.ui.svg import Drawing
from core.ui.words import operator_name
from core.units import format_gb, format_si, significant

Counted = Literal["FLOPs", "parameters", "bytes"]

_WIDTH: Final = 560
_AREA: Final = (0.0, 30.0, 560.0, 250.0)  # left, top, width, height
_BELOW: Final = 300
#: Room that a letter and a line need where letters are largest.
_LETTER: Final = 10.0
_TWO_LINES: Final = 50
_ONE_NUMBER: Final = 22
#: A box that is thinner than this, in units of the drawing, is no longer seen.
_LEAST: Final = 0.001


@dataclass(frozen=True, slots=True)
class _Share:
    """One box: its operators' name, the operator that a click opens, its value and its colour."""

    name: str
    pick: str
    value: float
    part: str


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float


@redrawable
def token_areas(works: Sequence[OperatorWork], counted: Counted, picked: str, marks: Marks) -> Picture:
    """Draw the operators of a token by their size, and the learner's mark below.

    Args:
        works: the operators.
        counted: what the areas are.
        picked: the opened operator by name; its box has a frame.
        marks: FLOPs of a token as they were asked for, said, and are now.
    """
    shares = _shares(works, counted)
    total = sum(share.value for share in shares)
    drawing = Drawing(_WIDTH, _BELOW + HEIGHT)
    drawing.text(4, 18, f"{counted} of one token: {_written(total, counted)} in all", "fill-ink strong")
    small: list[_Share] = []
    for share, box in zip(shares, _squarified([s.value for s in shares], _Box(*_AREA)), strict=True):
        _frame(drawing, share, box, is_open=share.pick == picked)
        if not _has_room(share, box, counted):
            small.append(share)
        _name(drawing, share, box, counted, number=small.index(share) + 1 if share in small else 0)
    draw_marks(drawing, _BELOW, "FLOPs of one token", marks)
    first = shares[0]
    return Picture(
        title=f"Where the {counted} are",
        drawing=drawing,
        alt=f"One token has {_written(total, counted)} {'' if counted == 'bytes' else counted + ' '}in all; "
        f"{significant(100 * first.value / total)} % of it is in {first.name}.{marks.sentence}",
        columns=("operator", "FLOPs", "parameters", "bytes moved", "of it weights", "of it cache"),
        rows=[_row(work) for work in works],
        legend=tuple(
            Label(f"fill-{share.part}", f"{number} {share.name}", _written(share.value, counted))
            for number, share in enumerate(small, start=1)
        ),
    )


def _value(work: OperatorWork, counted: Counted) -> float:
    return {"FLOPs": work.flops, "parameters": float(work.parameters), "bytes": work.bytes}[counted]


def _written(value: float, counted: Counted) -> str:
    if counted == "bytes":
        return format_gb(value)
    return f"{format_si(value)}FLOP" if counted == "FLOPs" else format_si(value).strip()


def _row(work: OperatorWork) -> tuple[str, float, int, float, float, float]:
    name = operator_name(work.name)
    return (name, work.flops, work.parameters, work.bytes, work.weight_bytes, work.cache_bytes)


def _shares(works: Sequence[OperatorWork], counted: Counted) -> list[_Share]:
    """The largest first; those that do not fit into one chart are one box."""
    found = [
        _Share(operator_name(work.name), work.name, _value(work, counted), part_of(work)) for work in works
    ]
    ordered = sorted((s for s in found if s.value > 0), key=lambda share: share.value, reverse=True)
    shown, rest = ordered[: MOST_THINGS - 1], ordered[MOST_THINGS - 1 :]
    if not rest:
        return shown
    return [*shown, _Share(f"{len(rest)} others", "", sum(share.value for share in rest), "overhead")]


def _frame(drawing: Drawing, share: _Share, box: _Box, *, is_open: bool) -> None:
    inset = min(1.0, box.width / 4, box.height / 4)
    inner = (box.x + inset, box.y + inset, box.width - 2 * inset, box.height - 2 * inset)
    drawing.rectangle(*inner, f"band fill-{share.part}")
    drawing.rectangle(*inner, "solid line-ink" if is_open else f"thin line-{share.part}")


def _has_room(share: _Share, box: _Box, counted: Counted) -> bool:
    letters = max(len(share.name), len(_written(share.value, counted)))
    return letters * _LETTER + 12 <= box.width and box.height >= _TWO_LINES


def _name(drawing: Drawing, share: _Share, box: _Box, counted: Counted, *, number: int) -> None:
    """The box's words, or the number under which they stand below the picture."""
    written = _written(share.value, counted)
    if number == 0:
        drawing.text(box.x + 9, box.y + 21, share.name, "fill-ink strong")
        drawing.text(box.x + 9, box.y + 43, written, "fill-ink")
    elif min(box.width, box.height) >= _ONE_NUMBER:
        middle = (box.x + box.width / 2, box.y + box.height / 2 + 6)
        drawing.text(*middle, str(number), "fill-ink", anchor="middle")
    hover = f"{share.name}: {written}"
    drawing.rectangle(box.x, box.y, box.width, box.height, "clear", hover=hover, pick=share.pick)


def _squarified(values: Sequence[float], box: _Box) -> list[_Box]:
    """Boxes whose areas are as the values, largest first, as square as neighbours allow."""
    if not values:
        return []
    if min(box.width, box.height) <= _LEAST:
        return [box] * len(values)
    side = min(box.width, box.height)
    scale = box.width * box.height / sum(values)
    count = 1
    while count < len(values) and _worst(values[: count + 1], side, scale) <= _worst(
        values[:count], side, scale
    ):
        count += 1
    row, rest = _cut(values[:count], scale, box)
    return [*row, *_squarified(values[count:], rest)]


def _worst(row: Sequence[float], side: float, scale: float) -> float:
    """The longest side over the shortest among the boxes of a row along ``side``."""
    depth = sum(row) * scale / side
    lengths = [value * scale / depth for value in row]
    return max(max(depth / length, length / depth) for length in lengths)


def _cut(row: Sequence[float], scale: float, box: _Box) -> tuple[list[_Box], _Box]:
    """Cut a row off the box along its shorter side, and what remains."""
    upright = box.width >= box.height
    side = box.height if upright else box.width
    depth = sum(row) * scale / side
    boxes, at = [], 0.0
    for value in row:
        length = value * scale / depth
        if upright:
            boxes.append(_Box(box.x, box.y + at, depth, length))
        else:
            boxes.append(_Box(box.x + at, box.y, length, depth))
        at += length
    if upright:
        return boxes, _Box(box.x + depth, box.y, max(box.width - depth, 0), box.height)
    return boxes, _Box(box.x, box.y + depth, box.width, max(box.height - depth, 0))
