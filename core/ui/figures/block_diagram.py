"""The way of one token through a model: its operators in order, one of them opened."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.token_work import OperatorWork
from core.ui.palette import COLOURS, PART_OF_KIND
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing
from core.ui.words import OPERATORS, operator_name
from core.units import format_gb, format_si

_WIDTH: Final = 560
_BOX: Final = (26, 262)
_ROW: Final = 24
_PANEL: Final = 288
_LETTERS: Final = 27
_LINE: Final = 23
_TOP: Final = 4
_OTHER: Final = "overhead"


@redrawable
def block_diagram(works: Sequence[OperatorWork], layers: int, picked: str) -> Picture:
    """Draw the operators and open one: what it does, its matrices and its parameters.

    Args:
        works: the operators in order.
        layers: how many layers the model has.
        picked: the opened operator by name; another name opens the first one.
    """
    opened = _opened(works, picked)
    lines = _described(opened)
    return _picture(works, layers, opened, lines)


@redrawable
def counted_block_diagram(works: Sequence[OperatorWork], layers: int, picked: str) -> Picture:
    """Draw the same with the FLOPs and the bytes of the opened operator; arguments as ``block_diagram``."""
    opened = _opened(works, picked)
    lines = [*_described(opened), *_counted(opened)]
    return _picture(works, layers, opened, lines)


def _opened(works: Sequence[OperatorWork], picked: str) -> OperatorWork:
    return next((work for work in works if work.name == picked), works[0])


def _picture(works: Sequence[OperatorWork], layers: int, opened: OperatorWork, lines: list[str]) -> Picture:
    height = _TOP + max(_ROW * len(works), _LINE * (len(lines) + 1)) + 4
    drawing = Drawing(_WIDTH, height)
    _frame(drawing, works, layers)
    for index, work in enumerate(works):
        _box(drawing, work, _TOP + index * _ROW, is_open=work is opened)
    _panel(drawing, opened, lines, _TOP + works.index(opened) * _ROW, height)
    parts = dict.fromkeys(part_of(work) for work in works)
    return Picture(
        title="The way of one token",
        drawing=drawing,
        alt=f"A token passes {len(works)} operators, those between the brackets in each of {layers} layers. "
        f"Opened: {'; '.join((operator_name(opened.name), *lines))}",
        columns=("operator", "times", "matrices", "parameters"),
        rows=[(operator_name(w.name), w.repeats, w.matrices or "none", w.parameters) for w in works],
        legend=tuple(Label(f"fill-{part}", _MEANING.get(part, part)) for part in parts),
    )


#: What the colours stand for here: which bytes an operator mostly moves.
_MEANING: Final = {name: f"mostly moves {colour.meaning}" for name, colour in COLOURS.items()} | {
    _OTHER: "other"
}


def part_of(work: OperatorWork) -> str:
    """The palette's part that an operator belongs to."""
    return PART_OF_KIND.get(work.kind, "kv" if work.kind == "recurrence" else _OTHER)


def _frame(drawing: Drawing, works: Sequence[OperatorWork], layers: int) -> None:
    """A bracket around what every layer repeats."""
    inside = [index for index, work in enumerate(works) if work.inside]
    if not inside:
        return
    top, bottom = _TOP + inside[0] * _ROW, _TOP + inside[-1] * _ROW + _ROW - 4
    drawing.path([(18, top), (10, top), (10, bottom), (18, bottom)], "solid line-muted")
    words = f"in each of {layers:,} layers"
    drawing.rectangle(0, top, 18, bottom - top, "faint fill-grid", hover=words)


def _box(drawing: Drawing, work: OperatorWork, y: float, *, is_open: bool) -> None:
    left, right = _BOX
    name, part = operator_name(work.name), part_of(work)
    drawing.rectangle(left, y, right - left, _ROW - 4, "fill-grid", round=3)
    drawing.rectangle(left, y, 7, _ROW - 4, f"fill-{part}")
    drawing.text(left + 14, y + 15, name, "fill-ink strong" if is_open else "fill-ink")
    if is_open:
        drawing.rectangle(left, y, right - left, _ROW - 4, "solid line-ink", round=3)
    # On top of the name, so that a click anywhere on the box is a click on it.
    drawing.rectangle(left, y, right - left, _ROW - 4, "clear", hover=f"open {name}", pick=work.name)


def _panel(drawing: Drawing, opened: OperatorWork, lines: list[str], y: float, height: float) -> None:
    top = min(y, height - 4 - _LINE * (len(lines) + 1))
    drawing.path([(_BOX[1], y + 10), (_PANEL - 10, top + 10)], "solid line-ink")
    drawing.text(_PANEL, top + 16, operator_name(opened.name), "fill-ink strong")
    for index, line in enumerate(lines, start=1):
        drawing.text(_PANEL, top + 16 + index * _LINE, line, "fill-ink")


def _described(work: OperatorWork) -> list[str]:
    says = OPERATORS.get(work.name, ("", ""))[1]
    lines = textwrap.wrap(says, _LETTERS)
    lines.append(f"{work.repeats:,} times" if work.repeats > 1 else "once")
    if work.matrices:
        lines += textwrap.wrap(f"matrix {work.matrices}", _LETTERS)
    kept = f"{format_si(work.parameters).strip()} parameters" if work.parameters else "no parameters"
    return [*lines, kept]


def _counted(work: OperatorWork) -> list[str]:
    flops = f"{format_si(work.flops)}FLOP a token" if work.flops else "no matrix product"
    return [flops, f"{format_gb(work.bytes)} moved"]
