"""The time between tokens as a client sees it: how often each gap occurred, at each concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale, ticks
from core.ui.table import Blank, Cell
from core.units import format_seconds

_WIDTH: Final = 560
_LEFT: Final = 92
_RIGHT: Final = 546
_TOP: Final = 12
#: Height of a row and of its tallest bar.
_ROW: Final = 74
_BAR: Final = 46
_BINS: Final = 45
_ROOM: Final = 1.1
_MS: Final = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """One concurrency: every gap in seconds, one or more, and the predicted TPOT; None without one."""

    concurrency: int
    seconds: NDArray[np.float64]
    predicted_s: float | None = None

    def percentile_s(self, rank: float) -> float:
        """A percentile of the gaps."""
        return float(np.percentile(self.seconds, rank))


@redrawable
def token_gaps(levels: Sequence[Gaps]) -> Picture:
    """Draw a row of bars for each concurrency over one axis of time.

    Args:
        levels: one or more, each with gaps.
    """
    top = max(max(level.percentile_s(99), level.predicted_s or 0.0) for level in levels) * _ROOM or 1e-6
    x = Scale(0, top, _LEFT, _RIGHT)
    bottom = _TOP + _ROW * len(levels)
    drawing = Drawing(_WIDTH, bottom + 52)
    for value in ticks(top * _MS):
        at = x(value / _MS)
        drawing.path([(at, _TOP), (at, bottom)], "thin line-grid")
        drawing.text(at, bottom + 20, f"{value:g}", "fill-muted", anchor="middle")
    drawing.text((_LEFT + _RIGHT) / 2, bottom + 44, "ms between two tokens", "fill-muted", anchor="middle")
    for index, level in enumerate(levels):
        _row(drawing, x, _TOP + _ROW * (index + 1), level)
    return Picture(
        title="Time between tokens",
        drawing=drawing,
        alt=_alt(levels),
        columns=(
            "at once", "gaps", "p50 ms", "p90 ms", "p99 ms", "longest ms", "predicted TPOT ms",
        ),
        rows=[_cells(level) for level in levels],
        look_at=_look_at(levels, top),
        legend=_legend(levels),
    )  # fmt: skip


def _row(drawing: Drawing, x: Scale, base: float, level: Gaps) -> None:
    counts, edges = np.histogram(np.minimum(level.seconds, x.high), bins=_BINS, range=(0, x.high))
    for count, low, high in zip(counts, edges, edges[1:], strict=False):
        if count:
            height = max(_BAR * count / counts.max(), 1.5)
            hover = f"{count:,} gaps from {format_seconds(float(low))} to {format_seconds(float(high))}"
            width = x(float(high)) - x(float(low)) - 1
            drawing.rectangle(x(float(low)), base - height, width, height, "fill-decode", hover=hover)
    drawing.path([(_LEFT, base), (_RIGHT, base)], "thin line-muted")
    drawing.text(_LEFT - 10, base - 4, f"{level.concurrency} at once", "fill-ink", anchor="end")
    median = level.percentile_s(50)
    at = x(median)
    drawing.path(
        [(at, base - _BAR - 8), (at, base)], "solid line-ink", hover=f"p50: {format_seconds(median)}"
    )
    if level.predicted_s is not None:
        at = x(level.predicted_s)
        hover = f"predicted TPOT: {format_seconds(level.predicted_s)}"
        drawing.path([(at, base - _BAR - 8), (at, base)], "outline line-ink", hover=hover)


def _legend(levels: Sequence[Gaps]) -> tuple[Label, ...]:
    measured = (
        Label("fill-decode", "how often, each row by itself"),
        Label("fill-ink", "solid line: the median"),
    )
    known = any(level.predicted_s is not None for level in levels)
    return (*measured, Label("outline line-ink", "dashed line: predicted TPOT")) if known else measured


def _alt(levels: Sequence[Gaps]) -> str:
    said = [
        f"at {level.concurrency} at once the median is {format_seconds(level.percentile_s(50))} and the 99th "
        f"percentile {format_seconds(level.percentile_s(99))}"
        + (f", predicted {format_seconds(level.predicted_s)}" if level.predicted_s is not None else "")
        for level in levels
    ]
    return f"Measured time between tokens: {'; '.join(said)}."


def _look_at(levels: Sequence[Gaps], top: float) -> str:
    beyond = sum(int((level.seconds > top).sum()) for level in levels)
    total = sum(len(level.seconds) for level in levels)
    end = f" {beyond:,} of {total:,} gaps are longer than the axis and stand at its end." if beyond else ""
    return (
        "A lone request has one heap: its steps. With others, a second heap further right is the steps that "
        f"waited while somebody's prompt was read.{end}"
    )


def _cells(level: Gaps) -> tuple[Cell, ...]:
    times = (*(level.percentile_s(rank) * _MS for rank in (50, 90, 99)), float(level.seconds.max()) * _MS)
    predicted = Blank.DOES_NOT_APPLY if level.predicted_s is None else level.predicted_s * _MS
    return (level.concurrency, len(level.seconds), *times, predicted)
