"""Two data sheets line by line: what each chip has, and the factor between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.sheet_growth import Growth
from core.ui.figures.factor_rows import WIDTH, FactorRow, draw_rows, factor_axis, height
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing
from core.ui.table import Blank, Cell
from core.units import significant

#: The lines that are asked about come first.
_ASKED: Final = 2


@redrawable
def covered_sheet_growth(lines: Sequence[Growth], earlier: str, later: str) -> Picture:
    """Draw the sheets with the first two lines of the later one covered.

    Args:
        lines: of both sheets; the first two are asked about.
        earlier: the name of the chip that is held against.
        later: the name of the other one.
    """
    rows = [
        FactorRow(line.name, f"{line.earlier.text} → ?", None, "")
        if index < _ASKED
        else FactorRow(line.name, f"{line.earlier.text} → {line.later.text}", line.factor, "outline line-ink")
        for index, line in enumerate(lines)
    ]
    table: list[tuple[Cell, ...]] = [
        (line.name, line.earlier.text, *(2 * (Blank.NOT_YET,) if index < _ASKED else _later(line)))
        for index, line in enumerate(lines)
    ]
    known = "; ".join(_said(line) for line in lines[_ASKED:]) or "nothing else is stated by both"
    return _picture(rows, table, earlier, later, f"Arithmetic and bandwidth are covered; {known}.")


@redrawable
def sheet_growth(lines: Sequence[Growth], earlier: str, later: str, guess: float | None) -> Picture:
    """Draw all of both sheets, with the learner's mark on the line of the arithmetic.

    Args:
        lines: of both sheets.
        earlier: the name of the chip that is held against.
        later: the name of the other one.
        guess: the factor of the arithmetic that the learner's choice stands for; None without one.
    """
    rows = [
        FactorRow(
            line.name,
            f"{line.earlier.text} → {line.later.text}",
            line.factor,
            "outline line-ink",
            mark=guess if index == 0 else None,
        )
        for index, line in enumerate(lines)
    ]
    table = [(line.name, line.earlier.text, *_later(line)) for line in lines]
    said = "; ".join(map(_said, lines))
    mine = "" if guess is None else f" Your choice stands for {significant(guess)} times the arithmetic."
    return _picture(rows, table, earlier, later, f"{said}.{mine}")


def _later(line: Growth) -> tuple[str, float]:
    return line.later.text, line.factor


def _said(line: Growth) -> str:
    return f"{line.name} {significant(line.factor)} times"


def _picture(
    rows: Sequence[FactorRow], table: Sequence[Sequence[Cell]], earlier: str, later: str, said: str
) -> Picture:
    axis = factor_axis([row.factor for row in rows if row.factor is not None] or [1.0])
    marks = [row.mark for row in rows if row.mark is not None]
    if marks:
        axis = factor_axis([row.factor for row in rows if row.factor is not None] + marks)
    drawing = Drawing(WIDTH, height(rows))
    draw_rows(drawing, rows, axis)
    return Picture(
        title=f"{earlier} → {later}",
        drawing=drawing,
        alt=f"From {earlier} to {later}, by their data sheets: {said}",
        columns=("line of the data sheet", earlier, later, "later / earlier"),
        rows=table,
    )
