"""How long each step takes, over one answer: predicted dashed, measured filled."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.ui.picture import Picture, redrawable
from core.ui.series import Window, windows
from core.ui.svg import Drawing, Scale, ticks
from core.ui.table import Blank, Cell
from core.units import format_seconds, significant

_WIDTH: Final = 560
_HEIGHT: Final = 276
_LEFT: Final = 56
_RIGHT: Final = 546
_TOP: Final = 44
_BOTTOM: Final = 218
_ROOM: Final = 1.2  # empty part above the highest mark
_MS: Final = 1000.0


#: Why a later token takes longer, with a cache and without one.
CACHED: Final = "it looks back at more tokens"
RECOMPUTED: Final = "without a cache every token so far goes through the model again"


@redrawable
def step_times(
    predicted_s: NDArray[np.float64],
    measured_s: NDArray[np.float64] | None = None,
    growth_reason: str = CACHED,
) -> Picture:
    """Draw the time of every decode step.

    Args:
        predicted_s: seconds of the steps that write tokens 2, 3, ...
        measured_s: the same as measured, of as many steps as were run; None before a run.
        growth_reason: why a later token takes longer, ``CACHED`` or ``RECOMPUTED``.
    """
    measured = np.empty(0) if measured_s is None else measured_s
    top = _top_s(predicted_s, measured)
    last = max(len(predicted_s), len(measured)) + 1
    x, y = Scale(2, max(last, 3), _LEFT, _RIGHT), Scale(0, top * _MS, _BOTTOM, _TOP)
    drawing = Drawing(_WIDTH, _HEIGHT)
    _axes(drawing, x, y, last)
    groups = windows(measured) if len(measured) else []
    _measured(drawing, x, y, measured, groups)
    _predicted(drawing, x, y, predicted_s)
    _key(drawing, measured=bool(groups))
    return Picture(
        title="Time per token over the answer",
        drawing=drawing,
        alt=_alt(predicted_s, measured),
        columns=("token", "predicted ms", "measured ms"),
        rows=_rows(predicted_s, measured),
        look_at=_look_at(predicted_s, measured, growth_reason),
    )


def _top_s(predicted_s: NDArray[np.float64], measured: NDArray[np.float64]) -> float:
    """The top of the axis; a few steps far above the rest must not flatten all others."""
    usual = float(np.percentile(measured, 95)) if len(measured) else 0.0
    return max(float(predicted_s.max(initial=0.0)), usual, 1e-6) * _ROOM


def _axes(drawing: Drawing, x: Scale, y: Scale, last: int) -> None:
    for value in ticks(y.high):
        drawing.path([(_LEFT, y(value)), (_RIGHT, y(value))], "thin line-grid")
        drawing.text(_LEFT - 8, y(value) + 5, f"{value:g}", "fill-muted", anchor="end")
    drawing.text(_LEFT - 8, _TOP - 22, "ms", "fill-muted", anchor="end")
    for token in sorted({2, (2 + last) // 2, last}):
        anchor = "end" if token == last else "middle"
        drawing.text(x(token), _BOTTOM + 24, str(token), "fill-muted", anchor=anchor)
    drawing.text((_LEFT + _RIGHT) / 2, _BOTTOM + 48, "token of the answer", "fill-muted", anchor="middle")


def _measured(
    drawing: Drawing, x: Scale, y: Scale, measured: NDArray[np.float64], groups: list[Window]
) -> None:
    if not groups:
        return
    upper = [(x(group.middle + 2), y(group.high * _MS)) for group in groups]
    lower = [(x(group.middle + 2), y(group.low * _MS)) for group in groups]
    drawing.path([*upper, *reversed(lower)], "band fill-decode")
    for index, value in enumerate(measured):
        hover = f"token {index + 2}: measured {format_seconds(float(value))}"
        drawing.circle(x(index + 2), y(value * _MS), 2.4, "faint fill-decode", hover=hover)
    points = [(x(group.middle + 2), y(group.median * _MS)) for group in groups]
    drawing.path(points, "solid line-decode")


def _predicted(drawing: Drawing, x: Scale, y: Scale, predicted_s: NDArray[np.float64]) -> None:
    points = [(x(index + 2), y(value * _MS)) for index, value in enumerate(predicted_s)]
    if len(points) == 1:
        points.append((_RIGHT, points[0][1]))
    if points:
        first, last = format_seconds(float(predicted_s[0])), format_seconds(float(predicted_s[-1]))
        drawing.path(points, "outline line-ink", hover=f"predicted: {first} at first, {last} at the end")


def _key(drawing: Drawing, *, measured: bool) -> None:
    drawing.path([(_LEFT, 16), (_LEFT + 26, 16)], "outline line-ink")
    drawing.text(_LEFT + 34, 21, "predicted", "fill-ink")
    if measured:
        drawing.path([(_LEFT + 160, 16), (_LEFT + 186, 16)], "solid line-decode")
        drawing.text(_LEFT + 194, 21, "measured", "fill-ink")
        drawing.rectangle(_LEFT + 316, 9, 26, 14, "band fill-decode")
        drawing.text(_LEFT + 350, 21, "p10 to p90", "fill-ink")


def _alt(predicted_s: NDArray[np.float64], measured: NDArray[np.float64]) -> str:
    if not len(predicted_s):
        return "No token after the first, so there is no time per token."
    words = f"Predicted time per token: {_span(predicted_s)} over {len(predicted_s)} tokens"
    if not len(measured):
        return f"{words}. Nothing is measured yet."
    return f"{words}; measured median {format_seconds(float(np.median(measured)))} over {len(measured)}."


def _span(values: NDArray[np.float64]) -> str:
    first, last = format_seconds(float(values[0])), format_seconds(float(values[-1]))
    return first if first == last else f"{first} to {last}"


def _look_at(predicted_s: NDArray[np.float64], measured: NDArray[np.float64], reason: str) -> str:
    if not len(predicted_s):
        return ""
    above = int((measured > _top_s(predicted_s, measured)).sum()) if len(measured) else 0
    if above:
        return f"{above} of {len(measured)} steps took longer than the axis shows; they lie at its top edge."
    growth = float(predicted_s[-1] / predicted_s[0])
    if growth > 1.02:
        times = significant(growth)
        return (
            f"Look at the slope: the last token takes {times} times as long as the second, because {reason}."
        )
    return "Look at how flat it is: over so few tokens, looking back at earlier ones hardly costs time."


def _rows(predicted_s: NDArray[np.float64], measured: NDArray[np.float64]) -> list[tuple[int, Cell, Cell]]:
    def at(values: NDArray[np.float64], index: int) -> Cell:
        return float(values[index] * _MS) if index < len(values) else missing

    # A run may end early; before a run, nothing is measured yet.
    missing = Blank.DOES_NOT_APPLY if len(measured) else Blank.NOT_YET
    count = max(len(predicted_s), len(measured))
    return [(index + 2, at(predicted_s, index), at(measured, index)) for index in range(count)]
