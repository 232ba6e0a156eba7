"""How many conversations fit at each length, on log axes, with the learner's mark below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale

_WIDTH: Final = 560
_X: Final = (62, 540)
_Y: Final = (204, 34)
_MARKS: Final = 268


@redrawable
def conversations_by_context(
    contexts: Sequence[int], counts: Sequence[int], context: int, conversations: int, marks: Marks
) -> Picture:
    """Draw the line of what fits; where nothing fits any more, it ends.

    Args:
        contexts: tokens of a conversation, ascending.
        counts: conversations that fit at each.
        context: what the page asks about now.
        conversations: how many fit there.
        marks: of the prediction.
    """
    drawing = Drawing(_WIDTH, _MARKS + HEIGHT)
    x = Scale(math.log10(contexts[0]), math.log10(contexts[-1]), *_X)
    y = Scale(0, max(math.ceil(math.log10(max(*counts, 10))), 1), *_Y)
    _axes(drawing, x, y, contexts)
    points = [
        (x(math.log10(tokens)), y(math.log10(many)))
        for tokens, many in zip(contexts, counts, strict=True)
        if many >= 1
    ]
    if len(points) > 1:
        drawing.path(points, "solid line-kv", hover="conversations that fit at each length")
    if conversations >= 1:
        _now(drawing, x(math.log10(context)), y(math.log10(conversations)), context, conversations)
    else:
        drawing.text(_X[0] + 12, _Y[1] + 30, f"not one of {context:,} tokens fits", "fill-ink strong")
    draw_marks(drawing, _MARKS, "conversations in the question", marks)
    return Picture(
        title="Conversations that fit, by their length",
        drawing=drawing,
        alt=f"{conversations:,} conversations of {context:,} tokens fit; twice as long, about half as many."
        + marks.sentence,
        columns=("tokens of a conversation", "conversations that fit"),
        rows=[*zip(contexts, counts, strict=True), (context, conversations)],
    )


def _axes(drawing: Drawing, x: Scale, y: Scale, contexts: Sequence[int]) -> None:
    for power in range(int(y.high) + 1):
        drawing.path([(_X[0], y(power)), (_X[1], y(power))], "thin line-grid")
        drawing.text(_X[0] - 7, y(power) + 5, f"{10**power:,}", "fill-muted", anchor="end")
    shown = contexts[:: max(math.ceil(len(contexts) / 5), 1)]
    for tokens in shown:
        at = x(math.log10(tokens))
        drawing.path([(at, _Y[0]), (at, _Y[0] + 5)], "thin line-muted")
        anchor = "end" if at > _X[1] - 30 else "middle"
        beside = at + 14 if anchor == "end" else at
        drawing.text(beside, _Y[0] + 23, f"{tokens:,}", "fill-muted", anchor=anchor)
    drawing.text(sum(_X) / 2, _Y[0] + 46, "tokens of each conversation", "fill-muted", anchor="middle")
    drawing.text(4, 14, "conversations", "fill-muted")


def _now(drawing: Drawing, x: float, y: float, context: int, conversations: int) -> None:
    words = f"{conversations:,} of {context:,} tokens"
    drawing.circle(x, y, 6, "fill-kv", hover=words)
    right = x > sum(_X) / 2
    drawing.text(
        x - 4 if right else x + 10, y - 12, words, "fill-ink strong", anchor="end" if right else "start"
    )
