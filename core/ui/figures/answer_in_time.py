"""One answer in time: the prefill as a block, then the decode steps."""

from __future__ import annotations

from typing import Final

from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.ui.table import Blank
from core.units import format_seconds, significant

_WIDTH: Final = 560
_HEIGHT: Final = 112
_LEFT: Final = 6
_RIGHT: Final = 548
_TOP: Final = 34
_BAR: Final = 46
#: More ticks than this are a grey surface and no ticks.
_MOST_TICKS: Final = 64


@redrawable
def answer_in_time(ttft_s: float, tpot_s: float | None, output_tokens: int) -> Picture:
    """Draw how long each phase of one answer takes, to scale.

    Args:
        ttft_s: seconds of the prefill.
        tpot_s: seconds of each decode step; None where there is none.
        output_tokens: tokens of the answer; the first comes with the prefill.
    """
    steps = output_tokens - 1 if tpot_s is not None else 0
    decode_s = steps * (tpot_s or 0.0)
    end_s = ttft_s + decode_s
    x = Scale(0, end_s, _LEFT, _RIGHT)
    drawing = Drawing(_WIDTH, _HEIGHT)
    drawing.text(_LEFT, 20, f"prefill {format_seconds(ttft_s)}", "fill-ink strong")
    hover = f"prefill: {format_seconds(ttft_s)}"
    drawing.rectangle(_LEFT, _TOP, x(ttft_s) - _LEFT, _BAR, "fill-prefill", hover=hover)
    if tpot_s is not None:
        _decode(drawing, x, ttft_s, tpot_s, steps)
    _axis(drawing, x, end_s)
    return Picture(
        title="One answer in time",
        drawing=drawing,
        alt=_alt(ttft_s, tpot_s, steps, end_s),
        columns=("phase", "passes", "seconds a pass", "seconds"),
        rows=(
            ("prefill", 1, ttft_s, ttft_s),
            ("decode", steps, Blank.DOES_NOT_APPLY if tpot_s is None else tpot_s, decode_s),
            ("end to end", steps + 1, Blank.DOES_NOT_APPLY, end_s),
        ),
        look_at=_look_at(ttft_s, decode_s),
    )


def _decode(drawing: Drawing, x: Scale, ttft_s: float, tpot_s: float, steps: int) -> None:
    words = f"{steps:,} decode steps, {format_seconds(tpot_s)} each" if steps > 1 else "1 decode step"
    drawing.text(_RIGHT, 20, words, "fill-ink strong", anchor="end")
    start, end = x(ttft_s), x(ttft_s + steps * tpot_s)
    hover = f"decode: {steps:,} steps of {format_seconds(tpot_s)}"
    drawing.rectangle(start, _TOP, end - start, _BAR, "fill-decode", hover=hover)
    shown = steps if steps <= _MOST_TICKS else 0
    for step in range(1, shown):
        at = x(ttft_s + step * tpot_s)
        drawing.path([(at, _TOP), (at, _TOP + _BAR)], "thin line-page")


def _axis(drawing: Drawing, x: Scale, end_s: float) -> None:
    base = _TOP + _BAR
    for value in ticks(end_s, 3):
        at = x(value)
        drawing.path([(at, base), (at, base + 6)], "thin line-muted")
        anchor = "start" if value == 0 else "end" if at > _RIGHT - 24 else "middle"
        drawing.text(at, base + 24, format_seconds(value), "fill-muted", anchor=anchor)


def _alt(ttft_s: float, tpot_s: float | None, steps: int, end_s: float) -> str:
    first = f"The prefill takes {format_seconds(ttft_s)}"
    if tpot_s is None:
        return f"{first}; the answer is one token, so there is no decode step."
    return (
        f"{first}, then {steps:,} decode steps take {format_seconds(tpot_s)} each: "
        f"{format_seconds(end_s)} in all."
    )


def _look_at(ttft_s: float, decode_s: float) -> str:
    if not decode_s:
        return "One token alone: all of the time is the prefill."
    if decode_s >= ttft_s:
        return f"Writing takes {significant(decode_s / ttft_s)} times as long as reading the prompt."
    return f"Reading the prompt takes {significant(ttft_s / decode_s)} times as long as writing."
