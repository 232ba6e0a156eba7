"""A worked number: its formula, the formula with today's values, each input's source, and Python.

The formula's symbols show their meaning on hover and stand again in the table below it, for
keyboards and touch screens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from core.ui import print_view, prose

_LINE: Final = (
    "font-family:ui-monospace,monospace;font-size:.9rem;line-height:1.55;overflow-wrap:anywhere;"
    "border-left:3px solid color-mix(in srgb,currentColor 30%,transparent);padding-left:.7rem"
)


_TABLE: Final = "width:100%;border-collapse:collapse;font-size:.82rem;line-height:1.3"
_CELL: Final = "padding:.3rem .4rem;text-align:left;vertical-align:top;border:0"
_ROW: Final = "border-top:1px solid color-mix(in srgb,currentColor 14%,transparent)"


@dataclass(frozen=True, slots=True)
class Input:
    """One symbol of a formula: what it means, its value today, and where that comes from.

    Attributes:
        url: where the source can be read; empty where it has no address.
    """

    symbol: str
    meaning: str
    value: str
    source: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class WorkedNumber:
    """One result with everything that leads to it.

    Attributes:
        name: the quantity ("TPOT"). formula, substituted: in the inputs' symbols, and in numbers.
        result: with its unit. python: a program that prints the result, needing nothing else.
        note: what the formula leaves out, or where it is an approximation.
    """

    name: str
    formula: str
    substituted: str
    result: str
    inputs: tuple[Input, ...]
    python: str
    note: str = ""


def show(number: WorkedNumber, key: str) -> None:
    """Draw one worked number in the current container."""
    st.html(
        f'<div style="{_LINE}"><div>{_with_meanings(number.formula, number.inputs)}</div>'
        f"<div>= {escape(number.substituted)}</div>"
        f"<div>= <strong>{escape(number.result)}</strong></div></div>"
    )
    st.html(_inputs(number.inputs))
    if number.note:
        prose.small(number.note)
    python = print_view.fold("Python that gives this number", key=f"{key}_python")
    if python.open:
        with python.place:
            st.code(number.python, language=None, wrap_lines=True)  # colours of a language lack contrast


def _inputs(inputs: Sequence[Input]) -> str:
    """The inputs as an HTML table; ``st.table`` would go through a data frame at every change."""
    words = ("symbol", "meaning", "value", "from")
    head = "".join(f'<th scope="col" style="{_CELL};opacity:.86">{word}</th>' for word in words)
    rows = "".join(
        f'<tr style="{_ROW}"><th scope="row" style="{_CELL};font-weight:600">{escape(item.symbol)}</th>'
        + "".join(
            f'<td style="{_CELL}">{text}</td>'
            for text in (escape(item.meaning), escape(item.value), _source(item))
        )
        + "</tr>"
        for item in inputs
    )
    return f'<table style="{_TABLE}" aria-label="Inputs"><tr>{head}</tr>{rows}</table>'


def _source(item: Input) -> str:
    if not item.url.startswith("https://"):
        return escape(item.source)
    attributes = 'target="_blank" rel="noopener" style="color:inherit"'
    return f'<a href="{escape(item.url)}" {attributes}>{escape(item.source)}</a>'


def _with_meanings(formula: str, inputs: Sequence[Input]) -> str:
    """The formula as HTML, each symbol with its meaning as a hover text."""
    meanings = {item.symbol: item.meaning for item in inputs}
    if not meanings:
        return escape(formula)
    longest_first = sorted(meanings, key=len, reverse=True)
    pattern = re.compile("|".join(re.escape(symbol) for symbol in longest_first))
    parts, end = [], 0
    for match in pattern.finditer(formula):
        parts.append(escape(formula[end : match.start()]))
        parts.append(f'<abbr title="{escape(meanings[match[0]])}">{escape(match[0])}</abbr>')
        end = match.end()
    return "".join(parts) + escape(formula[end:])
