"""A table as HTML: numbers with three significant digits, exact under the pointer, wrapped to the page.

``st.table`` would go through a data frame at every change, and what it clips cannot be reached by the
keyboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from html import escape
from typing import Final

import streamlit as st

from core.units import format_si, significant


class Blank(Enum):
    """A cell without a value that is not unknown either."""

    #: The column says nothing about this row.
    DOES_NOT_APPLY = "–"
    #: It is measured by a run, and none was made.
    NOT_YET = "not yet"


Cell = str | float | int | None | Blank
Rows = Sequence[Sequence[Cell]]

#: From here on a number that is not an exact count is written with a prefix.
_LARGE: Final = 1e6
_FRAME: Final = "overflow-x:auto"
_TABLE: Final = "width:100%;border-collapse:collapse;font-size:.86rem;line-height:1.35"
_CELL: Final = "padding:.3rem .35rem;vertical-align:top;border:0;overflow-wrap:anywhere"
_HEAD: Final = f"{_CELL};overflow-wrap:normal;opacity:.86;font-weight:600"
#: With more columns than this, a narrow page would break words; each column then keeps a width.
_MANY: Final = 4
_LEAST: Final = "min-width:3.4rem;"
#: The first column names the row, often in several words.
_LEAST_NAME: Final = "min-width:7.5rem;"
#: The longest word of a row's name that keeps a narrow column from breaking it.
_WORD: Final = 14
_ROW: Final = "border-top:1px solid color-mix(in srgb,currentColor 14%,transparent)"


def show(columns: Sequence[str], rows: Rows, label: str) -> None:
    """Draw the table in the current container.

    Args:
        columns: their names, with units.
        rows: a cell for each column; the first names the row.
        label: what the table is, for screen readers.
    """
    st.html(markup(columns, rows, label))


def markup(columns: Sequence[str], rows: Rows, label: str) -> str:
    """The table's HTML; every text in it is escaped.

    >>> markup(("part", "bytes"), [("KV <cache>", 12)], "Parts").count("&lt;cache&gt;")
    1
    """
    sides = ["right" if _is_numeric(rows, column) else "left" for column in range(len(columns))]
    least = [_LEAST_NAME, *[_LEAST] * (len(columns) - 1)] if len(columns) > _MANY else [""] * len(columns)
    head = "".join(
        f'<th scope="col" style="{_HEAD};{width}text-align:{side}">{escape(name)}</th>'
        for name, side, width in zip(columns, sides, least, strict=True)
    )
    body = "".join(f'<tr style="{_ROW}">{_cells(row, sides)}</tr>' for row in rows)
    # A table that is wider than a phone scrolls inside its frame, which the keyboard can reach.
    return (
        f'<div role="region" tabindex="0" aria-label="{escape(label)}" style="{_FRAME}">'
        f'<table style="{_TABLE}" aria-label="{escape(label)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def written(cell: Cell) -> str:
    """A cell as the page writes it.

    >>> written(2048.0), written(29_704_123_456_789.5), written(0.012345), written(None)
    ('2,048', '29.7 T', '0.0123', 'unknown')
    >>> written(Blank.DOES_NOT_APPLY), written(15_010_324_480)
    ('–', '15,010,324,480')
    """
    if cell is None:
        return "unknown"
    if isinstance(cell, Blank):
        return cell.value
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    if abs(cell) >= _LARGE:
        return format_si(cell).rstrip()
    return f"{cell:,.0f}" if cell.is_integer() else significant(cell)


def _cells(row: Sequence[Cell], sides: Sequence[str]) -> str:
    first, *others = [
        f'style="{_CELL};{_kept_whole(cell)}text-align:{side}"{_exact(cell)}>{escape(written(cell))}'
        for cell, side in zip(row, sides, strict=True)
    ]
    if max(map(len, written(row[0]).split()), default=0) <= _WORD:
        first = first.replace("overflow-wrap:anywhere", "overflow-wrap:normal", 1)
    return f'<th scope="row" {first}</th>' + "".join(f"<td {other}</td>" for other in others)


def _kept_whole(cell: Cell) -> str:
    """A number is never broken over two lines; the table then scrolls in its frame."""
    return "" if isinstance(cell, str) else "white-space:nowrap;"


def _exact(cell: Cell) -> str:
    return f' title="{cell:.15g}"' if isinstance(cell, float) else ""


def _is_numeric(rows: Rows, column: int) -> bool:
    return bool(rows) and all(not isinstance(row[column], str) for row in rows)
