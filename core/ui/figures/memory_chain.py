"""The memories of a chip as boxes below its units: as wide as what they hold, pipes as wide as what flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.memory_levels import HOST, MEMORY, NEIGHBOUR, Level
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing
from core.ui.table import Blank
from core.units import format_gb, format_gib

_WIDTH: Final = 560
_MIDDLE: Final = 170
_WORDS: Final = 350
_BOX: Final = 40
_PIPE: Final = 34
_TOP: Final = 2
#: Widths of the smallest and the largest box; capacities lie between on a log scale.
_BOXES: Final = (120.0, 330.0)
#: The same of pipes, by bandwidth.
_PIPES: Final = (4.0, 90.0)
_THIN: Final = 3.0
_OUTER: Final = {NEIGHBOUR: 90.0, HOST: 250.0}
_OUTER_WIDTH: Final = 150.0


@redrawable
def memory_chain(levels: Sequence[Level], picked: str) -> Picture:
    """Draw what each memory holds; how fast it delivers stays open.

    Args:
        levels: from the units outwards.
        picked: the level that is open, by name.
    """
    return _picture(levels, picked, _drawing(levels, picked, with_pipes=False), "")


@redrawable
def piped_memory_chain(levels: Sequence[Level], picked: str) -> Picture:
    """Draw the same with pipes as wide as the bandwidth; arguments as ``memory_chain``."""
    known = [level for level in levels if level.bandwidth_bytes_per_s]
    said = ", ".join(f"{level.title} {_rate(level)}" for level in known)
    return _picture(levels, picked, _drawing(levels, picked, with_pipes=True), f" They deliver: {said}.")


def _drawing(levels: Sequence[Level], picked: str, *, with_pipes: bool) -> Drawing:
    """Units on top; what is outside the chip is at the bottom, side by side."""
    inner = [level for level in levels if level.name not in _OUTER]
    outer = [level for level in levels if level.name in _OUTER]
    rows = len(inner) + (1 if outer else 0)
    drawing = Drawing(_WIDTH, _TOP + _BOX + rows * (_BOX + _PIPE) + 30)
    _box(drawing, (_MIDDLE, _TOP), _BOXES[0], "units")
    drawing.text(_WORDS, _TOP + 25, "multiply and add", "fill-muted")
    for row, level in enumerate(inner):
        y = _TOP + (row + 1) * (_BOX + _PIPE)
        travels = _order(picked, levels) >= _order(level.name, levels)
        _pipe(drawing, level, levels, _MIDDLE, y, with_pipes=with_pipes, travels=travels)
        drawing.text(_WORDS, y - _PIPE / 2 + 6, _rate(level) if with_pipes else "", "fill-ink strong")
        _box(
            drawing,
            (_MIDDLE, y),
            _box_width(level, inner),
            level.title,
            level.name,
            opened=level.name == picked,
        )
        drawing.text(_WORDS, y + 25, _capacity(level), "fill-ink")
    y = _TOP + (len(inner) + 1) * (_BOX + _PIPE)
    for level in outer:
        x, travels = _OUTER[level.name], level.name == picked
        _pipe(drawing, level, levels, x, y, with_pipes=with_pipes, travels=travels)
        _box(drawing, (x, y), _OUTER_WIDTH, level.title, level.name, opened=travels)
        words = f"{level.what}{f': {_rate(level)}' if with_pipes else ''}"
        line = y + 17 if level is outer[0] else y + 39
        drawing.text(_WORDS, line, words, "fill-ink strong" if with_pipes else "fill-ink")
    return drawing


def _order(name: str, levels: Sequence[Level]) -> int:
    """How far out a level is; what is outside the chip comes through its memory."""
    names = [level.name for level in levels]
    if name in _OUTER and MEMORY in names:
        return names.index(MEMORY)
    return names.index(name) if name in names else -1


def _box(
    drawing: Drawing,
    at: tuple[float, float],
    width: float,
    title: str,
    pick: str = "",
    *,
    opened: bool = False,
) -> None:
    x, y = at
    left = x - width / 2
    drawing.rectangle(left, y, width, _BOX, "fill-grid", round=4)
    drawing.rectangle(left, y, width, _BOX, "solid line-ink" if opened else "thin line-muted", round=4)
    drawing.text(x, y + 25, title, "fill-ink strong" if opened else "fill-ink", anchor="middle")
    if pick:
        drawing.rectangle(left, y, width, _BOX, "clear", hover=f"open {title}", pick=pick)


def _pipe(
    drawing: Drawing,
    level: Level,
    levels: Sequence[Level],
    x: float,
    y: float,
    *,
    with_pipes: bool,
    travels: bool,
) -> None:
    """The pipe above a level, and the byte in it where it is on its way."""
    width = _pipe_width(level, levels) if with_pipes else _THIN
    hover = f"{level.title}: {_rate(level)}" if with_pipes else f"the way from the {level.title}"
    style = "fill-communication" if level.name in _OUTER else "fill-weights"
    drawing.rectangle(x - width / 2, y - _PIPE, width, _PIPE, f"faint {style}", hover=hover)
    if travels:
        drawing.circle(x, y - _PIPE / 2, 6, "fill-ink", hover="a byte on its way to the units")


def _box_width(level: Level, levels: Sequence[Level]) -> float:
    sizes = [math.log10(other.capacity_bytes) for other in levels if other.capacity_bytes]
    if not level.capacity_bytes or max(sizes) == min(sizes):
        return _BOXES[1] if level.name == MEMORY else _BOXES[0]
    part = (math.log10(level.capacity_bytes) - min(sizes)) / (max(sizes) - min(sizes))
    return _BOXES[0] + 40 + part * (_BOXES[1] - _BOXES[0] - 40)


def _pipe_width(level: Level, levels: Sequence[Level]) -> float:
    rates = [math.log10(other.bandwidth_bytes_per_s) for other in levels if other.bandwidth_bytes_per_s]
    if not level.bandwidth_bytes_per_s or max(rates) == min(rates):
        return _THIN
    part = (math.log10(level.bandwidth_bytes_per_s) - min(rates)) / (max(rates) - min(rates))
    return _PIPES[0] + part * (_PIPES[1] - _PIPES[0])


def _rate(level: Level) -> str:
    rate = level.bandwidth_bytes_per_s
    return "not published" if rate is None else f"{format_gb(rate)}/s"


def _capacity(level: Level) -> str:
    """Memory is counted in binary units, what lies on the chip as its maker prints it."""
    if level.capacity_bytes is None:
        return "size not published"
    return format_gib(level.capacity_bytes) if level.name == MEMORY else format_gb(level.capacity_bytes)


def _picture(levels: Sequence[Level], picked: str, drawing: Drawing, said: str) -> Picture:
    inner = [level for level in levels if level.name not in _OUTER]
    held = ", ".join(f"{level.title} {_capacity(level)}" for level in inner)
    return Picture(
        title="How far is a byte from the units?",
        drawing=drawing,
        alt=f"From the units outwards, the whole chip holds: {held}.{said}",
        columns=("level", "holds bytes", "delivers bytes a second"),
        rows=[
            (
                level.title,
                Blank.DOES_NOT_APPLY if level.name in _OUTER else level.capacity_bytes,
                level.bandwidth_bytes_per_s if said else Blank.NOT_YET,
            )
            for level in levels
        ],
    )
