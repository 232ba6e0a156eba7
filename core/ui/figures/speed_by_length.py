"""How many times as fast guessing is, by guesses a round: the break-even line, and the learner's mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.guess_rounds import Length
from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.units import significant

_WIDTH: Final = 560
_X: Final = (46, 540)
_Y: Final = (226, 34)
_MARKS: Final = 290
_EVERY: Final = 4
_LEAST_TOP: Final = 1.5
_ROOM: Final = 1.12
#: Letters of a label in the drawing's units, on a phone where they are largest.
_LETTER: Final = 5.2
#: How far below a point its label stands, and how near two points are whose labels would meet.
_BELOW: Final = 24
_NEAR: Final = 90
_ASIDE: Final = 34


@redrawable
def speed_by_length(lengths: Sequence[Length], now: int, fastest: int, marks: Marks) -> Picture:
    """Draw both curves over the number of guesses, and mark where one stands and where it is fastest.

    Args:
        lengths: from no guess to the most.
        now: guesses of the page's control.
        fastest: the number that is fastest with this chip's check.
        marks: of the prediction.
    """
    drawing = Drawing(_WIDTH, _MARKS + HEIGHT)
    top = max(_LEAST_TOP, *(max(length.here, length.free) for length in lengths)) * _ROOM
    x, y = Scale(0, lengths[-1].guesses, *_X), Scale(0, top, *_Y)
    _axes(drawing, x, y, top)
    drawing.path([(x(one.guesses), y(one.free)) for one in lengths], "outline line-muted")
    drawing.path([(x(one.guesses), y(one.here)) for one in lengths], "solid line-decode")
    for one in lengths:
        hover = f"{one.guesses} guesses: {significant(one.here)} ×, {significant(one.tokens)} tokens a round"
        drawing.circle(x(one.guesses), y(one.here), 3, "fill-decode", hover=hover)
    _points(drawing, (x, y), lengths[now], lengths[fastest])
    draw_marks(drawing, _MARKS, "speed-up if the check takes as long as one step", marks)
    return Picture(
        title="When is guessing worth it?",
        drawing=drawing,
        alt=_alt(lengths[now], lengths[fastest]) + marks.sentence,
        columns=("guesses", "tokens a round", "times as fast here", "times as fast, check as one step"),
        rows=[(one.guesses, one.tokens, one.here, one.free) for one in lengths],
        legend=(
            Label("fill-ink", "break-even: below it guessing is slower"),
            Label("fill-decode", "with this chip's check for your users"),
            Label("outline line-muted", "if the check took as long as one step"),
        ),
    )


def _axes(drawing: Drawing, x: Scale, y: Scale, top: float) -> None:
    for value in ticks(top):
        if value != 1:
            drawing.path([(_X[0], y(value)), (_X[1], y(value))], "thin line-grid")
        drawing.text(_X[0] - 8, y(value) + 5, f"{value:g}", "fill-muted", anchor="end")
    drawing.path([(_X[0], y(1)), (_X[1], y(1))], "solid line-ink", hover="break-even: as fast as without")
    for guesses in range(0, int(x.high) + 1, _EVERY):
        drawing.text(x(guesses), _Y[0] + 22, f"{guesses}", "fill-muted", anchor="middle")
    drawing.text(sum(_X) / 2, _Y[0] + 44, "guesses a round", "fill-muted", anchor="middle")
    drawing.text(4, 14, "times as fast as without guesses", "fill-muted")


def _points(drawing: Drawing, axes: tuple[Scale, Scale], now: Length, fastest: Length) -> None:
    """Where one stands, filled; where it is fastest, a ring around it."""
    x, y = axes
    best, here = ((x(point.guesses), y(point.here)) for point in (fastest, now))
    drawing.circle(*best, 9, "solid line-ink", hover=f"fastest: {fastest.guesses} guesses")
    drawing.circle(*here, 6, "fill-ink", hover=f"now: {significant(now.here)} ×")
    words = f"fastest: {fastest.guesses}"
    if now.guesses == fastest.guesses:
        words = f"now, and fastest: {significant(now.here)} ×"
    drawing.text(_inside(best[0], words), best[1] - 15, words, "fill-ink strong", anchor="middle")
    if now.guesses != fastest.guesses:
        words = f"now: {significant(now.here)} ×"
        # Not across the line at 1: below it where one is slower, and above where one is little faster.
        is_low = now.here <= 1 or here[1] + _BELOW < y(1) - _LETTER
        below = is_low or abs(here[0] - best[0]) < _NEAR
        # Behind the fastest the curve falls, before it it rises: to one side of the point there is room.
        aside = _ASIDE if below == (now.guesses < fastest.guesses) else -_ASIDE
        height = here[1] + _BELOW if below else here[1] - 13
        drawing.text(_inside(here[0] + aside, words), height, words, "fill-ink strong", anchor="middle")


def _inside(x: float, words: str) -> float:
    half = _LETTER * len(words)
    return min(max(x, _X[0] + half), _WIDTH - half)


def _alt(now: Length, fastest: Length) -> str:
    side = "faster" if now.here > 1 else "slower"
    best = (
        f"The fastest is {fastest.guesses} guesses with {significant(fastest.here)} times."
        if fastest.guesses
        else "No number of guesses is faster than none."
    )
    return (
        f"With {now.guesses} guesses a round writing is {significant(now.here)} times as fast as without, so "
        f"{side}. {best}"
    )
