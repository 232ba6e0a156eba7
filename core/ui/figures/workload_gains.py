"""What a later chip does for several workloads, beside what its data sheet would lead one to expect."""

from __future__ import annotations

from collections.abc import Sequence

from core.lesson.quantities.sheet_growth import Growth
from core.lesson.quantities.workload_gain import Gain
from core.ui.figures.factor_rows import WIDTH, FactorRow, draw_rows, factor_axis, height
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing
from core.ui.table import Blank
from core.units import format_seconds, significant


@redrawable
def workload_gains(
    gains: Sequence[Gain], arithmetic: Growth, bandwidth: Growth, earlier: str, later: str
) -> Picture:
    """Draw the two lines of the sheets as outlines, and each workload's predicted gain as a filled bar.

    Args:
        gains: the workloads.
        arithmetic: a line of the two data sheets.
        bandwidth: another.
        earlier: the name of the chip that is held against.
        later: the name of the other one.
    """
    sheets = [
        FactorRow(f"sheet: {line.name}", "", line.factor, "outline line-ink", strong=False)
        for line in (arithmetic, bandwidth)
    ]
    rows = [*sheets, *map(_row, gains)]
    drawing = Drawing(WIDTH, height(rows))
    draw_rows(drawing, rows, factor_axis([row.factor for row in rows if row.factor is not None]))
    listed = "; ".join(f"{gain.name} {significant(gain.factor)} times as fast" for gain in gains)
    return Picture(
        title="What it does for an answer, predicted",
        drawing=drawing,
        alt=f"From {earlier} to {later} the sheets promise {significant(arithmetic.factor)} times the "
        f"arithmetic and {significant(bandwidth.factor)} times the bandwidth. Predicted: {listed}.",
        columns=_columns(earlier, later),
        rows=[
            (
                gain.name,
                gain.users,
                gain.input_tokens,
                gain.output_tokens,
                gain.earlier_s,
                gain.later_s,
                gain.factor,
                _fits(gain),
            )
            for gain in gains
        ],
        legend=(
            Label("fill-decode", "mostly writing"),
            Label("fill-prefill", "mostly reading the prompt"),
            *_too_large(gains, later),
        ),
    )


def _columns(earlier: str, later: str) -> tuple[str, ...]:
    lengths = ("prompt tokens", "answer tokens")
    times = (f"seconds on {earlier}", f"seconds on {later}", "times as fast")
    return ("workload", "users", *lengths, *times, f"fits {later}")


def _row(gain: Gain) -> FactorRow:
    style = "fill-prefill" if gain.prefill_share > 1 / 2 else "fill-decode"
    words = f"{format_seconds(gain.earlier_s)} → {format_seconds(gain.later_s)}"
    return FactorRow(gain.name, words, gain.factor, style)


def _fits(gain: Gain) -> str | Blank | None:
    return None if gain.fits is None else "yes" if gain.fits else "no"


def _too_large(gains: Sequence[Gain], later: str) -> tuple[Label, ...]:
    names = [gain.name for gain in gains if gain.fits is False]
    if not names:
        return ()
    return (Label("outline line-muted", f"more than one {later} holds", ", ".join(names)),)
