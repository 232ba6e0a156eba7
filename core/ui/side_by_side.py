"""A run's headline numbers as a table: predicted in a dashed frame, measured on a filled ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from core.units import significant

_TABLE: Final = "width:100%;border-collapse:collapse;margin:0"
_CELL: Final = "padding:.28rem .4rem;text-align:left;vertical-align:middle;border:0"
_ROW: Final = "border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)"
_SMALL: Final = "font-size:.78rem;line-height:1.2;opacity:.86;font-weight:400"
_VALUE: Final = "display:inline-block;border-radius:4px;padding:0 .35rem;font-weight:600;white-space:nowrap"
_PREDICTED: Final = f"{_VALUE};border:1.5px dashed currentColor"
_MEASURED: Final = (
    f"{_VALUE};border:1.5px solid transparent;background:color-mix(in srgb,currentColor 16%,transparent)"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity, written; an unknown value is an empty text.

    Attributes:
        name: short ("TTFT"). meaning: what it is, in a few words, shown under the name.
        predicted, measured: with their units. ratio: measured over predicted, None where unknown.
        spread: the ratio at the 10th and the 90th percentile of what was measured.
    """

    name: str
    meaning: str
    predicted: str = ""
    measured: str = ""
    ratio: float | None = None
    spread: tuple[float, float] | None = None


def show(quantities: Sequence[Quantity]) -> None:
    """Draw the table; it keeps its height when measured values arrive."""
    head = "".join(
        f'<th scope="col" style="{_CELL};{_SMALL}">{word}</th>'
        for word in ("quantity", "predicted", "measured", "measured / predicted")
    )
    rows = "".join(map(_row, quantities))
    st.html(
        f'<table style="{_TABLE}" aria-label="Predicted and measured"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(quantity: Quantity) -> str:
    ratio = "" if quantity.ratio is None else f"× {significant(quantity.ratio)}"
    spread = "" if quantity.spread is None else " to ".join(map(significant, quantity.spread))
    return (
        f'<tr style="{_ROW}"><th scope="row" style="{_CELL}">{escape(quantity.name)}'
        f' <span style="{_SMALL}">{escape(quantity.meaning)}</span></th>'
        f'<td style="{_CELL}"><span style="{_PREDICTED}">'
        f"{escape(quantity.predicted or 'not known yet')}</span></td>"
        f'<td style="{_CELL}"><span style="{_MEASURED}">{escape(quantity.measured or "not yet")}</span></td>'
        f'<td style="{_CELL}"><span style="white-space:nowrap">{ratio}</span> '
        f'<span style="{_SMALL}">{spread}</span></td></tr>'
    )
