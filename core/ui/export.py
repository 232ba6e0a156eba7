"""Tables that read well on a page, and the same rows as CSV and JSON files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

import streamlit as st

from core.ui import table
from core.ui.table import Blank, Cell, Rows


def to_csv(columns: Sequence[str], rows: Rows) -> str:
    """The rows as CSV with a header; numbers are exact, an unknown one is empty.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_safe(_bare(cell)) for cell in row] for row in rows)
    return buffer.getvalue()


def to_json(columns: Sequence[str], rows: Rows) -> str:
    """The rows as a list of objects, numbers exact, an unknown one null."""
    return json.dumps([dict(zip(columns, map(_bare, row), strict=True)) for row in rows], indent=1)


def show_table(
    columns: Sequence[str],
    rows: Rows,
    *,
    key: str,
    file_name: str,
    label: str,
    python: Callable[[], str] | None = None,
) -> None:
    """A static table with three significant digits, and buttons that save what is behind it.

    Args:
        columns: the names of its columns.
        rows: its cells.
        key: of the buttons.
        file_name: of the files, without an ending.
        label: what the table is, for screen readers.
        python: gives a program that makes these rows; None where there is none.
    """
    table.show(columns, rows, label)
    kinds: list[tuple[str, str, str, Callable[[], str]]] = [
        ("CSV", "csv", "text/csv", lambda: to_csv(columns, rows)),
        ("JSON", "json", "application/json", lambda: to_json(columns, rows)),
    ]
    if python is not None:
        kinds.append(("Python", "py", "text/x-python", python))
    with st.container(horizontal=True):
        for name, ending, media_type, make in kinds:
            st.download_button(
                name, make, f"{file_name}.{ending}", media_type, key=f"{key}_{ending}", on_click="ignore"
            )


def _bare(cell: Cell) -> str | float | int | None:
    return None if isinstance(cell, Blank) else cell


def _safe(cell: str | float | None) -> str | float | None:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in {"=", "+", "-", "@", "\t"} else cell
