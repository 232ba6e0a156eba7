"""What of the held cache is filled, in one piece and in blocks, with the learner's mark below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.simulate.waste import Slots
from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.figures.requests import hatch
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale

_WIDTH: Final = 560
_LEFT, _RIGHT = 6, 552
_TOP: Final = 8
_ROW, _BAR = 74, 26


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How a trace uses the cache in one layout.

    Attributes:
        name: of the layout. slots: held, summed over the steps. at_once: requests that hold memory, on
            average. steps: that serve the whole trace.
    """

    name: str
    slots: Slots
    at_once: float
    steps: int


@redrawable
def cache_waste(uses: Sequence[CacheUse], marks: Marks) -> Picture:
    """Draw a bar of held slots for each layout: filled, empty until later, and empty for good.

    Args:
        uses: the layouts.
        marks: of the prediction, in percent.
    """
    drawing = Drawing(_WIDTH, _TOP + len(uses) * _ROW + 16 + HEIGHT)
    x = Scale(0, 1, _LEFT, _RIGHT)
    for row, use in enumerate(uses):
        _bar(drawing, x, _TOP + row * _ROW, use)
    draw_marks(drawing, _TOP + len(uses) * _ROW + 16, "empty of what is reserved, in the question", marks)
    return Picture(
        title="What of the held memory is filled",
        drawing=drawing,
        alt=" ".join(map(_sentence, uses)) + marks.sentence,
        columns=(
            "layout",
            "slots filled",
            "filled later",
            "stay empty",
            "share empty",
            "requests at once, mean",
            "steps",
        ),
        rows=[
            (
                use.name,
                use.slots.filled,
                use.slots.later,
                use.slots.never,
                use.slots.waste_share,
                use.at_once,
                use.steps,
            )
            for use in uses
        ],
        legend=(
            Label("fill-kv", "filled"),
            Label("band fill-kv", "pale: empty now, filled later"),
            Label("clear thin line-muted", "hatched: stays empty"),
        ),
    )


def _bar(drawing: Drawing, x: Scale, top: float, use: CacheUse) -> None:
    drawing.text(_LEFT, top + 14, f"{use.name}: {100 * use.slots.waste_share:.0f} % empty", "fill-ink strong")
    y, held = top + 22, max(use.slots.held, 1)
    filled, later = x(use.slots.filled / held), x((use.slots.filled + use.slots.later) / held)
    drawing.rectangle(_LEFT, y, filled - _LEFT, _BAR, "fill-kv", hover=f"filled: {use.slots.filled:,} slots")
    hover = f"filled later: {use.slots.later:,} slots"
    drawing.rectangle(filled, y, later - filled, _BAR, "band fill-kv", hover=hover)
    hatch(drawing, later, y, _RIGHT - later, _BAR)
    hover = f"stay empty: {use.slots.never:,} slots"
    drawing.rectangle(later, y, _RIGHT - later, _BAR, "clear", hover=hover)
    frame = [(_LEFT, y), (_RIGHT, y), (_RIGHT, y + _BAR), (_LEFT, y + _BAR), (_LEFT, y)]
    drawing.path(frame, "thin line-kv")
    words = f"{use.at_once:.1f} requests at once on average, {use.steps:,} steps"
    drawing.text(_LEFT, y + _BAR + 17, words, "fill-muted")


def _sentence(use: CacheUse) -> str:
    return (
        f"{use.name.capitalize()}: {100 * use.slots.waste_share:.0f} % of the held slots are empty, "
        f"{use.at_once:.1f} requests at once, {use.steps:,} steps."
    )
