"""How long the same bytes take from each memory of a chip, on a log scale, and the learner's mark below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.lesson.quantities.memory_levels import MEMORY, Level
from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.ui.table import Blank, Cell
from core.units import format_gb, format_seconds, significant

_WIDTH: Final = 560
_LEFT: Final = 4
_RIGHT: Final = 556
_TOP: Final = 28
_ROW: Final = 44
_GAP: Final = 14


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read, and how long it takes from each level by name."""

    num_bytes: float
    times_s: Mapping[str, float]

    def fits(self, level: Level) -> bool:
        """Whether a level holds all of it; one of unknown size does."""
        return level.capacity_bytes is None or self.num_bytes <= level.capacity_bytes


@redrawable
def read_times(levels: Sequence[Level], num_bytes: float, data: str, picked: str, marks: Marks) -> Picture:
    """Draw a bar for each level whose bandwidth is known.

    Args:
        levels: from the units outwards.
        num_bytes: what is read.
        data: what that is, in words.
        picked: the level that is open, by name.
        marks: the scale of the prediction.
    """
    known = [(level, rate) for level in levels if (rate := level.bandwidth_bytes_per_s) is not None]
    read = _Read(num_bytes, {level.name: num_bytes / rate for level, rate in known})
    below = _TOP + _ROW * len(known) + _GAP
    drawing = Drawing(_WIDTH, below + HEIGHT)
    drawing.text(_LEFT, 16, f"{data}, {format_gb(num_bytes)}, read once", "fill-ink strong")
    scale = _scale(read)
    for row, (level, _) in enumerate(known):
        _bar(drawing, level, read, scale, _TOP + row * _ROW, is_open=level.name == picked)
    draw_marks(drawing, below, "reading the whole memory once", marks)
    slowest = max(known, key=lambda item: read.times_s[item[0].name])[0]
    return Picture(
        title="How long does it take?",
        drawing=drawing,
        alt=f"{data}, {format_gb(num_bytes)}, takes {format_seconds(read.times_s[MEMORY])} from memory, and "
        f"{format_seconds(read.times_s[slowest.name])} from the slowest, {slowest.title}.{marks.sentence}",
        columns=("from", "bytes a second", "seconds", "times as long as from memory", "fits"),
        rows=[_cells(level, read) for level in levels],
        legend=(Label("fill-weights", "fits there"), Label("band fill-weights", "is larger than it")),
    )


def _scale(read: _Read) -> Scale:
    """Seconds on a log scale that begins a little below the power of ten under the shortest."""
    low = math.floor(math.log10(min(read.times_s.values()))) - 0.2
    return Scale(low, max(math.log10(max(read.times_s.values())), low + 1), _LEFT, _RIGHT)


def _bar(drawing: Drawing, level: Level, read: _Read, scale: Scale, y: float, *, is_open: bool) -> None:
    seconds, fits = read.times_s[level.name], read.fits(level)
    name = f"{level.title}{f', {level.what}' if level.what else ''}"
    drawing.text(_LEFT, y + 15, name, "fill-ink strong" if is_open else "fill-ink")
    drawing.text(_RIGHT, y + 15, _compared(level, read), "fill-ink", anchor="end")
    width = scale(math.log10(seconds)) - _LEFT
    hover = f"{name}: {format_seconds(seconds)}{'' if fits else '; it does not fit there at once'}"
    drawing.rectangle(_LEFT, y + 21, width, 13, "fill-weights" if fits else "band fill-weights", hover=hover)
    if not fits or is_open:
        drawing.rectangle(_LEFT, y + 21, width, 13, "solid line-ink" if is_open else "thin line-weights")


def _compared(level: Level, read: _Read) -> str:
    seconds = read.times_s[level.name]
    if level.name == MEMORY:
        return format_seconds(seconds)
    factor = read.times_s[MEMORY] / seconds
    side = "less" if factor > 1 else "more"
    return f"{format_seconds(seconds)}  ({significant(max(factor, 1 / factor))} × {side})"


def _cells(level: Level, read: _Read) -> tuple[Cell, ...]:
    seconds = read.times_s.get(level.name)
    longer = None if seconds is None else seconds / read.times_s[MEMORY]
    fits = Blank.DOES_NOT_APPLY if level.capacity_bytes is None else "yes" if read.fits(level) else "no"
    return (level.title, level.bandwidth_bytes_per_s, seconds, longer, fits)
