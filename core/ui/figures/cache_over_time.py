"""The cache over time: the blocks that are held in each step, how full they are, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.figures.time_axis import StepAxis, draw_axis
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.units import format_gib

_WIDTH: Final = 560
_LEFT, _RIGHT = 52, 546
_TOP, _BOTTOM = 16, 150


@dataclass(frozen=True, slots=True)
class CacheUsed:
    """The cache in one step.

    Attributes:
        step: its number, from 0 on. blocks: that are held. filled_tokens: tokens that lie in them.
        waiting: requests that have come and hold none.
    """

    step: int
    blocks: int
    filled_tokens: int
    waiting: int


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How the cache is laid out: blocks, tokens in each, and bytes of each."""

    blocks: int
    block_tokens: int
    block_bytes: float


@redrawable
def cache_over_time(
    used: Sequence[CacheUsed], size: CacheSize, axis: StepAxis, source: str, chosen: int = -1
) -> Picture:
    """Draw held blocks as a light area, what is filled of them as a dark one, and all blocks as a line.

    Args:
        used: the steps in which somebody ran, in order.
        size: the cache.
        axis: where the steps lie.
        source: what the steps are: "simulated", or where they were served.
        chosen: the step that other pictures show, from 0 on; below 0 for none.
    """
    drawing = Drawing(_WIDTH, _BOTTOM + 46)
    x, y = axis.scale(_LEFT, _RIGHT), Scale(0, size.blocks * 1.1, _BOTTOM, _TOP)
    for value in ticks(size.blocks, 4):
        drawing.path([(_LEFT, y(value)), (_RIGHT, y(value))], "thin line-grid")
        drawing.text(_LEFT - 8, y(value) + 5, f"{value:g}", "fill-muted", anchor="end")
    if 0 <= chosen < len(axis.edges) - 1:
        left, right = x(axis.edges[chosen]), x(axis.edges[chosen + 1])
        drawing.rectangle(left, _TOP, max(right - left, 2), _BOTTOM - _TOP, "band fill-muted")
    for moment in used:
        sides = x(axis.edges[moment.step]), x(axis.edges[moment.step + 1])
        _moment(drawing, sides, y, moment, size)
    drawing.path([(_LEFT, y(size.blocks)), (_RIGHT, y(size.blocks))], "outline line-ink")
    draw_axis(drawing, axis, x, _BOTTOM)
    most = max(used, key=lambda moment: moment.blocks)
    words = f"at most {most.blocks:,} of {size.blocks:,} blocks, {format_gib(most.blocks * size.block_bytes)}"
    return Picture(
        title=f"The cache over time: {words}",
        drawing=drawing,
        alt=f"Held blocks, {source}: {words}, in step {most.step + 1}. {_filled(used, size)}",
        columns=("step", "blocks held", "blocks free", "tokens in them", "requests waiting"),
        rows=[(m.step + 1, m.blocks, size.blocks - m.blocks, m.filled_tokens, m.waiting) for m in used],
        legend=(
            Label("fill-kv", "dark: filled", f"{_mean_share(used, size):.0%} of what is held"),
            Label("band fill-kv", "light: held and empty"),
            Label("clear thin line-ink", "dashed: all blocks", f"{size.block_tokens:,} tokens each"),
        ),
    )


def _moment(
    drawing: Drawing, sides: tuple[float, float], y: Scale, moment: CacheUsed, size: CacheSize
) -> None:
    left, right = sides
    hover = (
        f"step {moment.step + 1}: {moment.blocks:,} blocks held, {moment.filled_tokens:,} of "
        f"{moment.blocks * size.block_tokens:,} slots filled"
    )
    for blocks, style in (
        (float(moment.blocks), "band fill-kv"),
        (moment.filled_tokens / size.block_tokens, "fill-kv"),
    ):
        drawing.rectangle(left, y(blocks), right - left, _BOTTOM - y(blocks), style, hover=hover)


def _mean_share(used: Sequence[CacheUsed], size: CacheSize) -> float:
    held = sum(moment.blocks for moment in used) * size.block_tokens
    return sum(moment.filled_tokens for moment in used) / held if held else 0.0


def _filled(used: Sequence[CacheUsed], size: CacheSize) -> str:
    return f"Over all steps {_mean_share(used, size):.0%} of the held slots are filled."
