"""A log scale of one quantity: the learner's mark on it, what is true of the question, and what holds now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.lesson.amount import Amount
from core.ui.svg import Drawing, Scale

HEIGHT: Final = 112
_MOST_LABELS: Final = 6
#: A value of the page that differs by less is the question's own.
_SAME: Final = 0.01
#: Width of a letter on a phone, where letters are largest.
_LETTER: Final = 5.0


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked, all in one unit.

    Attributes:
        low, high: ends of the scale. said: the learner's mark, None where there is none.
        true: of the question's own case. now: of the page's controls.
    """

    low: float
    high: float
    unit: str
    said: float | None
    true: float
    now: float

    def text(self, value: float) -> str:
        """A value with its unit."""
        return Amount(value, self.unit).text

    @property
    def sentence(self) -> str:
        """What the learner said, for those who do not see it; empty where nothing was said."""
        return "" if self.said is None else f" You said {self.text(self.said)}."


def draw_marks(drawing: Drawing, top: float, title: str, marks: Marks) -> None:
    """Draw the scale from ``top`` on, ``HEIGHT`` high; what lies outside is drawn at its end.

    Args:
        drawing: to draw on.
        top: where the title stands.
        title: of what the scale is.
        marks: what is on it.
    """
    y = top + 60
    drawing.text(4, top + 14, title, "fill-ink strong")
    axis = Scale(math.log10(marks.low), math.log10(marks.high), 30, drawing.width - 30)
    drawing.path([(axis.start, y), (axis.end, y)], "solid line-muted")
    _labels(drawing, axis, y, marks)
    if marks.said is not None:
        _said(drawing, axis(math.log10(marks.said)), y, f"you: {marks.text(marks.said)}")
    x = axis(math.log10(marks.true))
    drawing.circle(x, y, 6, "fill-ink", hover=f"the question: {marks.text(marks.true)}")
    words = marks.text(marks.true)
    if abs(marks.now / marks.true - 1) > _SAME:
        words = f"asked: {words}, now: {marks.text(marks.now)}"
        drawing.rectangle(axis(math.log10(marks.now)) - 2, y - 9, 4, 18, "fill-ink", hover="now")
    drawing.text(*_inside(drawing, x, y + 24, words), "fill-ink strong", anchor="middle")


def _labels(drawing: Drawing, axis: Scale, y: float, marks: Marks) -> None:
    low, high = math.ceil(axis.low), math.floor(axis.high)
    stride = max(math.ceil((high - low) / _MOST_LABELS), 1)
    for power in range(low, high + 1, stride):
        drawing.path([(axis(power), y - 4), (axis(power), y + 4)], "solid line-muted")
        words = f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}"
        drawing.text(*_inside(drawing, axis(power), y + 48, words), "fill-muted", anchor="middle")


def _said(drawing: Drawing, x: float, y: float, words: str) -> None:
    """The learner's mark: an outline, as predictions are."""
    diamond = [(x, y - 10), (x + 9, y), (x, y + 10), (x - 9, y), (x, y - 10)]
    drawing.path(diamond, "solid line-ink", hover=words)
    drawing.text(*_inside(drawing, x, y - 17, words), "fill-ink", anchor="middle")


def _inside(drawing: Drawing, x: float, y: float, words: str) -> tuple[float, float, str]:
    """The middle of a text that must not leave the drawing."""
    half = _LETTER * len(words)
    return min(max(x, half), drawing.width - half), y, words
