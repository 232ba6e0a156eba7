"""What a cache saves and what it costs: the time of a step against its context, and a memory meter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.lesson.quantities.kv_cache import Work
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.units import format_gb, format_seconds, significant

_WIDTH: Final = 560
_HEIGHT: Final = 300
_PLOT: Final = (52, 400)
_METER: Final = (462, 514)
_TOP: Final = 44
_BOTTOM: Final = 238
_MOST_ROWS: Final = 12
_MS: Final = 1000.0
_GUESS_POINTS: Final = 24


@dataclass(frozen=True, slots=True)
class Guess:
    """The learner's choice: how it is called, and the power of the context that it stands for."""

    words: str
    exponent: float


@redrawable
def cached_work_and_memory(work: Work, prompt_tokens: int, guess: Guess | None) -> Picture:
    """Draw an answer that keeps its keys and values: the flat line is its own, the meter fills.

    Args:
        work: every context from an empty prompt to the end of the answer.
        prompt_tokens: where the answer begins.
        guess: the learner's mark, if there is one.
    """
    drawing = _plot(work, prompt_tokens, guess, own="cached")
    _meter(drawing, work, prompt_tokens)
    look_at = (
        "The dot on the flat line is this answer's last step. The meter on the side is the price: it grows "
        "by the same amount with each token."
    )
    drawn = _picture(work, prompt_tokens, drawing, guess, "What is kept saves time, and takes memory")
    return replace(drawn, look_at=look_at)


@redrawable
def recomputed_work_and_memory(work: Work, prompt_tokens: int, guess: Guess | None) -> Picture:
    """Draw the same answer without a cache: the steep line is its own, the meter stays empty."""
    drawing = _plot(work, prompt_tokens, guess, own="recomputed")
    _frame(drawing, work, "0 B")
    look_at = (
        "The dot on the steep line is this answer's last step. Nothing is kept, so the meter stays empty. "
        "Keep keys and values, and watch both change."
    )
    drawn = _picture(work, prompt_tokens, drawing, guess, "Nothing is kept: no memory, much time")
    return replace(drawn, look_at=look_at)


def _plot(work: Work, prompt_tokens: int, guess: Guess | None, own: str) -> Drawing:
    drawing = Drawing(_WIDTH, _HEIGHT)
    last, top_s = float(work.contexts[-1]), float(work.recomputed_s.max())
    x, y = Scale(0, last, *_PLOT), Scale(0, top_s * _MS * 1.12, _BOTTOM, _TOP)
    drawing.rectangle(x(prompt_tokens), _TOP, _PLOT[1] - x(prompt_tokens), _BOTTOM - _TOP, "fill-grid")
    _axes(drawing, x, y, prompt_tokens)
    for name, values in (("recomputed", work.recomputed_s), ("cached", work.cached_s)):
        points = [(x(c), y(s * _MS)) for c, s in zip(work.contexts.tolist(), values.tolist(), strict=True)]
        _curve(drawing, points, values)
        if name == own:
            drawing.circle(*points[-1], 5, "fill-decode", hover="this answer")
    drawing.text(_PLOT[0] + 8, _TOP - 6, "ms a step", "fill-muted")
    middle = len(work.contexts) * 2 // 3
    at = (x(work.contexts[middle]) - 8, y(float(work.recomputed_s[middle]) * _MS) - 6)
    drawing.text(*at, "without a cache", "fill-ink strong", anchor="end")
    with_a_cache = max(y(float(work.cached_s[-1]) * _MS) - 8, _TOP + 20)
    drawing.text(_PLOT[1] - 6, with_a_cache, "with a cache", "fill-ink strong", anchor="end")
    if guess is not None:
        _guess(drawing, x, y, guess, top_s)
    return drawing


def _axes(drawing: Drawing, x: Scale, y: Scale, prompt_tokens: int) -> None:
    for value in ticks(y.high):
        drawing.path([(_PLOT[0], y(value)), (_PLOT[1], y(value))], "thin line-grid")
        drawing.text(_PLOT[0] - 7, y(value) + 5, f"{value:,g}", "fill-muted", anchor="end")
    drawing.text(_PLOT[0], _BOTTOM + 20, "0", "fill-muted", anchor="middle")
    drawing.text(_PLOT[1], _BOTTOM + 20, f"{x.high:,.0f}", "fill-muted", anchor="end")
    drawing.text(sum(_PLOT) / 2, _BOTTOM + 20, "context, tokens", "fill-muted", anchor="middle")


def _curve(drawing: Drawing, points: list[tuple[float, float]], seconds: NDArray[np.float64]) -> None:
    if len(points) == 1:
        points = [(float(_PLOT[0]), points[0][1]), *points]
    hover = f"{format_seconds(float(seconds[0]))} at first, {format_seconds(float(seconds[-1]))} at the end"
    drawing.path(points, "solid line-decode", hover=hover)


def _guess(drawing: Drawing, x: Scale, y: Scale, guess: Guess, top_s: float) -> None:
    """The learner's curve through the end of the true one: only its shape was asked for."""
    parts = np.linspace(0.0, 1.0, _GUESS_POINTS)
    points = [(x(p * x.high), y(top_s * _MS * p**guess.exponent)) for p in parts.tolist()]
    drawing.path(points, "outline line-ink", hover=f"you: {guess.words}")
    drawing.path([(_PLOT[0], _BOTTOM + 40), (_PLOT[0] + 26, _BOTTOM + 40)], "outline line-ink")
    drawing.text(_PLOT[0] + 34, _BOTTOM + 44, f"you: {guess.words}", "fill-ink")


def _frame(drawing: Drawing, work: Work, words: str) -> Scale:
    left, right = _METER
    top_bytes = float(work.cache_bytes[-1]) * 1.12
    scale = Scale(0, top_bytes, _BOTTOM, _TOP)
    frame = [(left, _TOP), (right, _TOP), (right, _BOTTOM), (left, _BOTTOM), (left, _TOP)]
    drawing.path(frame, "thin line-muted")
    drawing.text((left + right) / 2, _TOP - 24, "KV cache", "fill-muted", anchor="middle")
    drawing.text((left + right) / 2, _TOP - 6, words, "fill-ink strong", anchor="middle")
    return scale


def _meter(drawing: Drawing, work: Work, prompt_tokens: int) -> None:
    left, right = _METER
    at_end = float(work.cache_bytes[-1])
    at_start = float(np.interp(prompt_tokens, work.contexts, work.cache_bytes))
    scale = _frame(drawing, work, format_gb(at_end))
    prompt, answer = format_gb(at_start), format_gb(at_end - at_start)
    height = _BOTTOM - scale(at_start)
    drawing.rectangle(left, scale(at_start), right - left, height, "fill-kv", hover=f"prompt: {prompt}")
    height = scale(at_start) - scale(at_end)
    drawing.rectangle(left, scale(at_end), right - left, height, "faint fill-kv", hover=f"answer: {answer}")
    drawing.path([(left, scale(at_start)), (right, scale(at_start))], "thin line-ink")
    drawing.text((left + right) / 2, _BOTTOM + 20, f"prompt {prompt}", "fill-muted", anchor="middle")
    drawing.text((left + right) / 2, _BOTTOM + 44, f"answer {answer}", "fill-muted", anchor="middle")


def _picture(work: Work, prompt_tokens: int, drawing: Drawing, guess: Guess | None, title: str) -> Picture:
    slow, fast = float(work.recomputed_s[-1]), float(work.cached_s[-1])
    said = f" You said that it grows {guess.words}." if guess else ""
    return Picture(
        title=title,
        drawing=drawing,
        alt=f"At {work.contexts[-1]:,.0f} tokens a step takes {format_seconds(slow)} without a cache and "
        f"{format_seconds(fast)} with one, {significant(slow / fast)} times less; the cache then holds "
        f"{format_gb(float(work.cache_bytes[-1]))}.{said}",
        columns=(
            "context tokens",
            "without a cache ms",
            "with a cache ms",
            "without a cache GFLOP",
            "with a cache GFLOP",
            "cache bytes",
        ),
        rows=_rows(work),
        legend=(Label("fill-grid", "steps of this answer"),),
    )


def _rows(work: Work) -> list[tuple[int, float, float, float, float, int]]:
    count = len(work.contexts)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _MOST_ROWS)).round().astype(int))
    return [
        (
            int(work.contexts[i]),
            float(work.recomputed_s[i] * _MS),
            float(work.cached_s[i] * _MS),
            float(work.recomputed_flops[i] / 1e9),
            float(work.cached_flops[i] / 1e9),
            int(work.cache_bytes[i]),
        )
        for i in chosen.tolist()
    ]
