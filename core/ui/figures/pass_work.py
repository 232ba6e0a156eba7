"""The prefill beside one decode step: tokens, arithmetic, bytes; and how far apart their limits lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.lesson.quantities.answer_timeline import Timeline
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.ui.table import Blank
from core.units import format_gb, format_si, significant

_WIDTH: Final = 560
_BARS: Final = (4, 320)
_VALUES: Final = 330
_FACTORS: Final = 556
_GROUP: Final = 62
_AXIS: Final = 258
_MOST_LABELS: Final = 6
#: A ratio belongs to neither pass alone.
_NEITHER: Final = (Blank.DOES_NOT_APPLY, Blank.DOES_NOT_APPLY)


@dataclass(frozen=True, slots=True)
class RatioScale:
    """A log scale of factors: the learner's mark and what is true of the question, and what holds now.

    Attributes:
        low, high: its ends. said: the learner's mark, None where there is none.
        true: of the question's own case. now: of the page's controls.
    """

    low: float
    high: float
    said: float | None
    true: float
    now: float


@redrawable
def pass_work(line: Timeline, prompt_tokens: int, users: int, scale: RatioScale) -> Picture:
    """Draw what a prefill and a step read, compute and move, and the ratio of their limits.

    Args:
        line: the passes.
        prompt_tokens: of all users together.
        users: who are served at once.
        scale: of the ratio, with the learner's mark.
    """
    drawing = Drawing(_WIDTH, _AXIS + 62)
    groups = _groups(line, prompt_tokens, users)
    for index, (name, prefill, step, written) in enumerate(groups):
        _group(drawing, index * _GROUP, name, (prefill, step), written)
    _ratio(drawing, scale)
    bytes_factor = significant(line.prefill_bytes / line.step_bytes)
    flops_factor = significant(line.prefill_flops / line.step_flops)
    return Picture(
        title="What each pass works on",
        drawing=drawing,
        alt=f"A prefill does {flops_factor} times the arithmetic of a decode step and moves {bytes_factor} "
        f"times its bytes. At most, tokens are read {significant(scale.now)} times as fast as written."
        + (f" You said {significant(scale.said)} times." if scale.said else ""),
        columns=("what", "prefill", "one decode step", "prefill / step"),
        rows=[
            *((name, float(prefill), float(step), prefill / step) for name, prefill, step, _ in groups),
            ("tokens a second, at most, read / written", *_NEITHER, scale.now),
            ("your mark", *_NEITHER, Blank.DOES_NOT_APPLY if scale.said is None else scale.said),
        ],
    )


def _groups(
    line: Timeline, prompt_tokens: int, users: int
) -> list[tuple[str, float, float, tuple[str, str]]]:
    """Name, of the prefill, of the step, and both as texts."""
    flops = (f"{format_si(line.prefill_flops)}FLOP", f"{format_si(line.step_flops)}FLOP")
    moved = (format_gb(line.prefill_bytes), format_gb(line.step_bytes))
    return [
        ("tokens", prompt_tokens, users, (f"{prompt_tokens:,}", f"{users:,}")),
        ("arithmetic, FLOPs", line.prefill_flops, line.step_flops, flops),
        ("bytes moved", line.prefill_bytes, line.step_bytes, moved),
    ]


def _group(
    drawing: Drawing, y: float, name: str, values: tuple[float, float], written: tuple[str, str]
) -> None:
    scale = Scale(0, max(values), *_BARS)
    drawing.text(_BARS[0], y + 15, name, "fill-ink strong")
    for row, (phase, value, text) in enumerate(zip(("prefill", "decode"), values, written, strict=True)):
        top = y + 21 + 17 * row
        word = "prefill" if phase == "prefill" else "one step"
        width = max(scale(value) - _BARS[0], 1.5)
        drawing.rectangle(_BARS[0], top, width, 14, f"fill-{phase}", hover=f"{word}: {text}")
        drawing.text(_VALUES, top + 12, text, "fill-ink")
    drawing.text(_FACTORS, y + 42, f"{_factor(values)}", "fill-ink strong", anchor="end")
    if y == 0:
        drawing.rectangle(_BARS[0] + 150, 4, 11, 11, "fill-prefill")
        drawing.text(_BARS[0] + 166, 15, "prefill", "fill-ink")
        drawing.rectangle(_BARS[0] + 236, 4, 11, 11, "fill-decode")
        drawing.text(_BARS[0] + 252, 15, "one decode step", "fill-ink")


def _factor(values: tuple[float, float]) -> str:
    above, below = max(values), min(values)
    factor = above / below
    if factor < 1.005:
        return "the same"
    # Tokens are counts: their factor is exact where it is a whole number.
    return f"× {factor:,.0f}" if factor.is_integer() else f"× {significant(factor)}"


def _ratio(drawing: Drawing, scale: RatioScale) -> None:
    drawing.text(_BARS[0], _AXIS - 50, "tokens a second, at most: read / written", "fill-ink strong")
    low, high = math.log10(scale.low), math.log10(scale.high)
    axis = Scale(low, high, 26, 534)
    drawing.path([(axis.start, _AXIS), (axis.end, _AXIS)], "solid line-muted")
    stride = max(math.ceil((high - low) / _MOST_LABELS), 1)
    for power in range(math.ceil(low), math.floor(high) + 1, stride):
        drawing.path([(axis(power), _AXIS - 4), (axis(power), _AXIS + 4)], "solid line-muted")
        drawing.text(axis(power), _AXIS + 54, f"{10**power:,}", "fill-muted", anchor="middle")
    if scale.said is not None:
        _mark(drawing, axis(math.log10(scale.said)), f"you: {significant(scale.said)} ×")
    x = axis(math.log10(scale.true))
    drawing.circle(x, _AXIS, 6, "fill-ink", hover=f"the question: {significant(scale.true)} ×")
    words = f"{significant(scale.true)} ×"
    if abs(scale.now / scale.true - 1) > 0.01:
        words = f"asked: {words}, now: {significant(scale.now)} ×"
        drawing.rectangle(axis(math.log10(scale.now)) - 2, _AXIS - 9, 4, 18, "fill-ink", hover="now")
    drawing.text(*_beside(x, _AXIS + 26, words), "fill-ink strong", anchor="middle")


def _mark(drawing: Drawing, x: float, words: str) -> None:
    """The learner's mark: an outline, as predictions are."""
    diamond = [(x, _AXIS - 10), (x + 9, _AXIS), (x, _AXIS + 10), (x - 9, _AXIS), (x, _AXIS - 10)]
    drawing.path(diamond, "solid line-ink", hover=words)
    drawing.text(*_beside(x, _AXIS - 18, words), "fill-ink", anchor="middle")


def _beside(x: float, y: float, words: str) -> tuple[float, float, str]:
    """The middle of a text that must not leave the drawing."""
    half = 5.0 * len(words)
    return min(max(x, half), _WIDTH - half), y, words
