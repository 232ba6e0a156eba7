"""The memory of a chip as one bar: weights, conversations, what a pass needs, and the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.palette import COLOURS
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.units import GB, GIB, format_count, format_gib

_WIDTH: Final = 560
_HEIGHT: Final = 116
_LEFT: Final = 6
_RIGHT: Final = 548
_TOP: Final = 34
_BAR: Final = 48
#: More conversations than this run together.
_MOST_CELLS: Final = 70
#: What overflows further is drawn to here, as a multiple of the memory.
_MOST_OVER: Final = 1.6


@dataclass(frozen=True, slots=True)
class ChipMemory:
    """Bytes on a chip; ``budget_bytes`` is what the engine may use of the capacity.

    Attributes:
        kv_bytes: of all conversations. conversations: how many that is.
    """

    capacity_bytes: float
    budget_bytes: float
    weights_bytes: float
    kv_bytes: float
    reserve_bytes: float
    conversations: int

    @property
    def used_bytes(self) -> float:
        """Everything together."""
        return self.weights_bytes + self.kv_bytes + self.reserve_bytes

    @property
    def free_bytes(self) -> float:
        """What is left of the budget; negative where it does not suffice."""
        return self.budget_bytes - self.used_bytes


@redrawable
def chip_memory(memory: ChipMemory, chip: str) -> Picture:
    """Draw the bar to scale, each conversation a cell of it, with the edges that limit it.

    Args:
        memory: the parts.
        chip: its name.
    """
    shown = min(max(memory.used_bytes, memory.capacity_bytes), _MOST_OVER * memory.capacity_bytes)
    x = Scale(0, shown / GIB, _LEFT, _RIGHT)
    drawing = Drawing(_WIDTH, _HEIGHT)
    start = 0.0
    for part, size in _parts(memory):
        hover = f"{_name(part, memory)}: {format_gib(size)}"
        left, right = x(start / GIB), x((start + size) / GIB)
        drawing.rectangle(left, _TOP, right - left, _BAR, f"fill-{part}", hover=hover)
        if part == "kv":
            _cells(drawing, x, start, memory)
        start += size
    _edges(drawing, x, memory)
    for value in ticks(x.high, 5):
        drawing.path([(x(value), _TOP + _BAR), (x(value), _TOP + _BAR + 6)], "thin line-muted")
        anchor = "start" if value == 0 else "end" if x(value) > _RIGHT - 24 else "middle"
        words = f"{value:g} GiB" if value == 0 or x(value) > _RIGHT - 60 else f"{value:g}"
        drawing.text(x(value), _TOP + _BAR + 26, words, "fill-muted", anchor=anchor)
    return Picture(
        title=f"The memory of one {chip}",
        drawing=drawing,
        alt=_alt(memory, chip),
        columns=("part", "bytes", "GiB", "GB"),
        rows=_rows(memory),
        legend=_legend(memory),
    )


def _parts(memory: ChipMemory) -> Sequence[tuple[str, float]]:
    return (
        ("weights", memory.weights_bytes),
        ("activations", memory.reserve_bytes),
        ("kv", memory.kv_bytes),
    )


def _name(part: str, memory: ChipMemory) -> str:
    if part == "kv":
        return format_count(memory.conversations, "conversation")
    return "a pass, driver and framework" if part == "activations" else COLOURS[part].meaning


def _cells(drawing: Drawing, x: Scale, start: float, memory: ChipMemory) -> None:
    if not 1 < memory.conversations <= _MOST_CELLS:
        return
    one = memory.kv_bytes / memory.conversations
    for index in range(1, memory.conversations):
        at = x((start + index * one) / GIB)
        if at < _RIGHT:
            drawing.path([(at, _TOP), (at, _TOP + _BAR)], "thin line-page")


def _edges(drawing: Drawing, x: Scale, memory: ChipMemory) -> None:
    """The end of the memory, and of what the engine may use: the line that nothing may pass."""
    end, edge = x(memory.capacity_bytes / GIB), x(memory.budget_bytes / GIB)
    frame = [(_LEFT, _TOP), (end, _TOP), (end, _TOP + _BAR), (_LEFT, _TOP + _BAR), (_LEFT, _TOP)]
    drawing.path(frame, "thin line-ink")
    # On a ground of the page's own, so that it stands out where the bar runs past it.
    drawing.rectangle(edge - 3.5, _TOP - 8, 7, _BAR + 12, "fill-page")
    drawing.rectangle(edge - 1.5, _TOP - 8, 3, _BAR + 12, "fill-decode", hover="the engine's edge")
    drawing.text(
        edge + 2, _TOP - 14, f"edge: {format_gib(memory.budget_bytes)}", "fill-ink strong", anchor="end"
    )


def _legend(memory: ChipMemory) -> tuple[Label, ...]:
    left = "free up to the edge" if memory.free_bytes >= 0 else "past the edge"
    return (
        *(Label(f"fill-{part}", _name(part, memory), format_gib(size)) for part, size in _parts(memory)),
        Label("thin line-ink", left, format_gib(abs(memory.free_bytes))),
    )


def _alt(memory: ChipMemory, chip: str) -> str:
    listed = ", ".join(f"{_name(part, memory)} {format_gib(size)}" for part, size in _parts(memory))
    left = "are free" if memory.free_bytes >= 0 else "are missing"
    return (
        f"{chip} offers {format_gib(memory.capacity_bytes)}, of which the engine may use "
        f"{format_gib(memory.budget_bytes)}: {listed}; {format_gib(abs(memory.free_bytes))} {left}."
    )


def _rows(memory: ChipMemory) -> list[tuple[str, int, float, float]]:
    named = [(_name(part, memory), size) for part, size in _parts(memory)]
    named += [
        ("all of it", memory.used_bytes),
        ("the engine may use", memory.budget_bytes),
        ("the chip offers", memory.capacity_bytes),
        ("free up to the edge", memory.free_bytes),
    ]
    return [(name, round(size), size / GIB, size / GB) for name, size in named]
