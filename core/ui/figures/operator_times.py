"""Where a pass spends its time, operator by operator: predicted outlined, measured filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from core.ui.palette import COLOURS
from core.ui.picture import Picture, redrawable
from core.ui.series import MIXED, Gap, gap_shares, in_order, largest_gaps
from core.ui.svg import Drawing, Scale
from core.ui.table import Blank, Cell
from core.ui.words import operator_name
from core.units import format_seconds, significant

_WIDTH: Final = 560
_ROW: Final = 46
_TOP: Final = 40
_LEFT: Final = 4
_RIGHT: Final = 552
_MS: Final = 1000.0
_COLUMNS: Final = (
    "operator",
    "predicted ms",
    "measured ms",
    "p10 ms",
    "p90 ms",
    "measured / predicted",
    "gap ms",
    "share of the gap",
)
Order = Literal["gap", "run"]


@redrawable
def operator_times(rows: Sequence[Gap], phase: str, order: Order = "gap") -> Picture:
    """Draw one pass by operator.

    Args:
        rows: one an operator, in the order in which they run.
        phase: "prefill" or "decode", for the title.
        order: "gap" for what adds most to the gap between predicted and measured first, "run" for the
            order in which they run.
    """
    shown = largest_gaps(rows) if order == "gap" else in_order(rows)
    drawing = Drawing(_WIDTH, _TOP + _ROW * max(len(shown), 1))
    longest = max(
        (max(row.predicted_s, row.measured_s or 0.0, row.high_s or 0.0) for row in shown), default=1
    )
    scale = Scale(0, longest or 1, _LEFT, _RIGHT)
    measured = any(row.measured_s is not None for row in rows)
    _key(drawing, shown, measured=measured)
    for index, row in enumerate(shown):
        _row(drawing, row, scale, _TOP + index * _ROW)
    return Picture(
        title="One decode step by operator" if phase == "decode" else "The prefill by operator",
        drawing=drawing,
        alt=_alt(rows, phase),
        columns=_COLUMNS,
        rows=_table(rows, order),
        look_at=_look_at(order, measured=measured),
    )


def _row(drawing: Drawing, row: Gap, scale: Scale, y: float) -> None:
    drawing.text(_LEFT, y + 15, operator_name(row.name), "fill-ink")
    drawing.text(_RIGHT, y + 15, _numbers(row), "fill-ink", anchor="end")
    if row.measured_s is not None:
        hover = f"{operator_name(row.name)}: measured {format_seconds(row.measured_s)}"
        width = scale(row.measured_s) - _LEFT
        drawing.rectangle(_LEFT, y + 23, width, 12, f"fill-{row.part}", hover=hover)
    if row.low_s is not None and row.high_s is not None:
        drawing.path([(scale(row.low_s), y + 29), (scale(row.high_s), y + 29)], "solid line-ink")
    hover = f"{operator_name(row.name)}: predicted {format_seconds(row.predicted_s)}"
    drawing.rectangle(_LEFT, y + 20, scale(row.predicted_s) - _LEFT, 18, "outline line-ink", hover=hover)


def _numbers(row: Gap) -> str:
    if row.measured_s is None:
        return format_seconds(row.predicted_s)
    both = f"{format_seconds(row.predicted_s)} | {format_seconds(row.measured_s)}"
    return both if row.ratio is None else f"{both}  × {significant(row.ratio)}"


def _key(drawing: Drawing, rows: Sequence[Gap], *, measured: bool) -> None:
    x = float(_LEFT)
    drawing.rectangle(x, 6, 22, 14, "outline line-ink")
    drawing.text(x + 28, 18, "predicted", "fill-ink")
    x += 120
    if not measured:
        return
    for part in dict.fromkeys(row.part for row in rows):
        word = "several" if part == MIXED else COLOURS[part].meaning
        drawing.rectangle(x, 7, 12, 12, f"fill-{part}")
        drawing.text(x + 17, 18, word, "fill-ink")
        x += 30 + 9.5 * len(word)


def _alt(rows: Sequence[Gap], phase: str) -> str:
    if not rows:
        return "There are no operators to show."
    first = max(rows, key=lambda row: row.size_s)
    name = operator_name(first.name)
    if first.measured_s is None:
        longest = format_seconds(first.predicted_s)
        return f"Predicted {phase} time by operator; the longest is {name} with {longest}."
    return (
        f"{phase.capitalize()} time by operator; the largest gap is {name}: predicted "
        f"{format_seconds(first.predicted_s)}, measured {format_seconds(first.measured_s)}."
    )


def _look_at(order: Order, *, measured: bool) -> str:
    if not measured:
        return "Outlines are predictions; press Run, and measured bars fill them."
    first = "Sorted by gap." if order == "gap" else "In the order in which they run."
    return (
        f"{first} Where the filled bar leaves its outline, the prediction is wrong; the thin line is "
        "the spread (p10 to p90)."
    )


def _table(rows: Sequence[Gap], order: Order) -> list[tuple[Cell, ...]]:
    found = list(zip(rows, gap_shares(rows), strict=True))
    if order == "gap":
        found.sort(key=lambda pair: pair[0].size_s, reverse=True)
    return [_cells(row, share) for row, share in found]


def _cells(row: Gap, share: float | None) -> tuple[Cell, ...]:
    def ms(value: float | None) -> Cell:
        return Blank.NOT_YET if value is None else value * _MS

    return (
        operator_name(row.name),
        ms(row.predicted_s),
        ms(row.measured_s),
        ms(row.low_s),
        ms(row.high_s),
        Blank.NOT_YET if row.ratio is None else row.ratio,
        ms(row.gap_s),
        Blank.NOT_YET if share is None else f"{share:.0%}",
    )
