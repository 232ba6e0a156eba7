"""Tables that read well on a page, and the same rows as CSV and JSON files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import streamlit as st

from core.ui.plain import plain
from core.units import significant

Cell = str | float | int | None
Rows = Sequence[Sequence[Cell]]


def to_csv(columns: Sequence[str], rows: Rows) -> str:
    """The rows as CSV with a header; numbers are exact, an unknown one is empty.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_safe(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def to_json(columns: Sequence[str], rows: Rows) -> str:
    """The rows as a list of objects, numbers exact, an unknown one null."""
    return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1)


def show_table(columns: Sequence[str], rows: Rows, *, key: str, file_name: str) -> None:
    """A static table with three significant digits, and two buttons that save the exact numbers."""
    names = [plain(name) for name in columns]
    st.table([dict(zip(names, map(_written, row), strict=True)) for row in rows])
    with st.container(horizontal=True):
        st.download_button(
            "CSV",
            lambda: to_csv(columns, rows),
            f"{file_name}.csv",
            "text/csv",
            key=f"{key}_csv",
            on_click="ignore",
        )
        st.download_button(
            "JSON",
            lambda: to_json(columns, rows),
            f"{file_name}.json",
            "application/json",
            key=f"{key}_json",
            on_click="ignore",
        )


def _written(cell: Cell) -> str:
    if cell is None:
        return "unknown"
    if isinstance(cell, float):
        return significant(cell)
    return f"{cell:,}" if isinstance(cell, int) else plain(cell)


def _safe(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in {"=", "+", "-", "@", "\t"} else cell
