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

_LINE: Final = (
    "font-family:ui-monospace,monospace;font-size:.9rem;line-height:1.55;overflow-wrap:anywhere;"
    "border-left:3px solid color-mix(in srgb,currentColor 30%,transparent);padding-left:.7rem"
)


@dataclass(frozen=True, slots=True)
class Input:
    """One symbol of a formula: what it means, its value today, and where that comes from."""

    symbol: str
    meaning: str
    value: str
    source: str


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
    st.table(
        [
            {"symbol": item.symbol, "meaning": item.meaning, "value": item.value, "from": item.source}
            for item in number.inputs
        ]
    )
    if number.note:
        st.caption(number.note)
    python = st.expander("Python that gives this number", key=f"{key}_python", on_change="rerun")
    if python.open:
        with python:
            st.code(number.python, language="python")


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
