"""One answer in time: the prefill as a block, every decode step as a tick; and its beginning, enlarged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.answer_timeline import Timeline
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.units import format_count, format_seconds

_WIDTH: Final = 560
_HEIGHT: Final = 202
_LEFT: Final = 4
_RIGHT: Final = 556
_WHOLE: Final = (30, 26)  # top and height of the whole answer
_CLOSE: Final = (124, 46)  # of its beginning, enlarged
_TICK: Final = 0.7  # the part of a step's width that is filled
_NARROWEST: Final = 1.6  # ticks closer than this run together
_MS: Final = 1000.0


@redrawable
def answer_timeline(line: Timeline, prompt_tokens: int, steps: int, users: int) -> Picture:
    """Draw the passes by what they read and give, without their times.

    Args:
        line: the times of the passes.
        prompt_tokens: that the prefill reads, for one user.
        steps: that follow the first token.
        users: who are served at once.
    """
    prefill, decode = _labels(prompt_tokens, steps, users)
    drawing = _drawing(line, prefill, decode)
    return _picture(line, drawing, prompt_tokens, steps, "Widths are times.")


@redrawable
def timed_answer_timeline(line: Timeline, prompt_tokens: int, steps: int, users: int) -> Picture:
    """Draw the same with the time of each kind of pass in its label."""
    prefill, decode = _labels(prompt_tokens, steps, users)
    each = f"{decode}: {format_seconds(_step_s(line, steps))}" if steps else ""
    drawing = _drawing(line, f"{prefill}: {format_seconds(line.prefill_s)}", each)
    drawing.text(_RIGHT, _WHOLE[0] - 9, format_seconds(line.end_s), "fill-ink strong", anchor="end")
    said = f"It takes {format_seconds(line.prefill_s)} and {_each(line, steps)}."
    return _picture(line, drawing, prompt_tokens, steps, said)


def _labels(prompt_tokens: int, steps: int, users: int) -> tuple[str, str]:
    """What is said of the block, and of the ticks."""
    read = format_count(prompt_tokens, "token")
    given = "one token each" if users == 1 else f"{users:,} tokens each"
    count = format_count(steps, "decode step")
    return f"prefill of {read}", f"{count}, {given}" if steps else ""


def _drawing(line: Timeline, prefill: str, decode: str) -> Drawing:
    drawing = Drawing(_WIDTH, _HEIGHT)
    whole, close = Scale(0, line.end_s, _LEFT, _RIGHT), _close_scale(line)
    drawing.text(_LEFT, _WHOLE[0] - 9, "The whole answer", "fill-ink")
    _row(drawing, line, whole, *_WHOLE)
    above, below = _CLOSE[0] - 9, sum(_CLOSE) + 20
    for start, end in ((_LEFT, _LEFT), (whole(close.high), _RIGHT)):
        drawing.path([(start, sum(_WHOLE) + 2), (end, above - 16)], "thin line-muted")
    drawing.rectangle(_LEFT, above - 10, 11, 11, "fill-prefill")
    drawing.text(_LEFT + 17, above, prefill, "fill-ink")
    _row(drawing, line, close, *_CLOSE)
    if decode:
        drawing.rectangle(_RIGHT - 11, below - 10, 11, 11, "fill-decode")
        drawing.text(_RIGHT - 17, below, decode, "fill-ink", anchor="end")
    return drawing


def _close_scale(line: Timeline) -> Scale:
    """The beginning: the prefill, and steps beside it of at least a dozen or of most of its length."""
    step_s = float(line.step_s[0]) if len(line.step_s) else 0.0
    shown_s = min(line.prefill_s + max(12 * step_s, 0.8 * line.prefill_s), line.end_s)
    return Scale(0, shown_s, _LEFT, _RIGHT)


def _row(drawing: Drawing, line: Timeline, scale: Scale, y: float, height: float) -> None:
    hover = f"prefill: {format_seconds(line.prefill_s)}"
    width = max(scale(line.prefill_s) - _LEFT, 1.2)
    drawing.rectangle(_LEFT, y, width, height, "fill-prefill", hover=hover)
    starts = [start for start in line.starts_s if start < scale.high]
    if not starts:
        return
    hover = f"decode: {len(line.step_s):,} ticks until {format_seconds(line.end_s)}"
    drawing.path(_comb(line, starts, scale, y, height), "fill-decode", hover=hover)


def _comb(
    line: Timeline, starts: Sequence[float], scale: Scale, y: float, height: float
) -> list[tuple[float, float]]:
    """The ticks as one shape: up, along, down, for each; or one block where they would run together."""
    bottom = y + height
    ends = [start + float(step) for start, step in zip(starts, line.step_s, strict=False)]
    if (scale(ends[-1]) - scale(starts[0])) / len(starts) < _NARROWEST:
        left, right = scale(starts[0]), scale(ends[-1])
        return [(left, bottom), (left, y), (right, y), (right, bottom)]
    points = []
    for start, end in zip(starts, ends, strict=True):
        left = scale(start) + 0.6
        right = left + max((scale(end) - scale(start)) * _TICK, 0.5)
        points += [(left, bottom), (left, y), (right, y), (right, bottom)]
    return points


def _step_s(line: Timeline, steps: int) -> float:
    """The mean step; a tick may be several."""
    return float(line.step_s.sum()) / max(steps, 1)


def _each(line: Timeline, steps: int) -> str:
    return f"{format_seconds(_step_s(line, steps))} a step" if steps else "no step follows"


def _picture(line: Timeline, drawing: Drawing, prompt_tokens: int, steps: int, said: str) -> Picture:
    share = line.prefill_s / max(_step_s(line, steps), 1e-12) if steps else 0.0
    long = f" The prefill is as long as {share:,.0f} steps." if steps and share >= 2 else ""
    return Picture(
        title="One answer in time",
        drawing=drawing,
        alt=f"One answer in time: a prefill of {prompt_tokens:,} prompt tokens, then {steps:,} decode "
        f"steps, each with one token a user.{long} {said}",
        columns=("pass", "starts at ms", "takes ms"),
        rows=_rows(line),
    )


def _rows(line: Timeline) -> list[tuple[str, float, float]]:
    """The prefill, and a few ticks from first to last."""
    rows = [("prefill", 0.0, line.prefill_s * _MS)]
    count = len(line.step_s)
    for index in sorted({0, 1, count // 4, count // 2, 3 * count // 4, count - 1} & set(range(count))):
        start, step = float(line.starts_s[index]), float(line.step_s[index])
        rows.append((f"tick {index + 1} of {count}", start * _MS, step * _MS))
    return rows
