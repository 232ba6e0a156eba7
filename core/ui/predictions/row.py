"""One published row, opened: its conditions, its source, and the arithmetic of its prediction."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.analytic.validation.error_table import FACETS, UNITS, metric_words
from core.analytic.validation.judged import JudgedRun
from core.analytic.validation.worked_run import Line, WorkedRun, program, work_out
from core.catalog.plain_text import plain_text
from core.ui import prose, table, worked_number
from core.ui.predictions import words
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_gb, format_seconds, significant

#: A space at which no line breaks.
_KEPT: Final = "\N{NO-BREAK SPACE}"
_LONGEST_NOTE: Final = 600
_SUMS: Final = ("step", "first", "ttft", "tpot")
_ORIGINS: Final = {
    **dict.fromkeys(("batch", "input", "output", "chips"), "the row"),
    "weight_bytes": "the model's shape",
    "bandwidth": "the data sheet",
}
_NOTE: Final = (
    "Shares and fixed costs are fitted to the rows of all other sources; this row's source was left out. "
    "Sizes come from the model's shape, rates from the chip's data sheet."
)


def draw(judged: JudgedRun) -> None:
    """Everything about one row, in the current container."""
    run = judged.run
    prose.paragraph(words.both(judged), strong=f"{words.row_name(judged)}.")
    table.show(("condition", "value"), _conditions(judged), f"Conditions of row {run.id}")
    if run.source.startswith("https://"):
        st.link_button("Open the source", run.source, icon=":material/open_in_new:")
    worked_number.show(number(work_out(judged)), key="predictions_row")


def number(worked: WorkedRun) -> WorkedNumber:
    """A row's arithmetic as the page shows one."""
    run = worked.judged.run
    name = metric_words(run.metric)
    values = {line.symbol: f"{line.value:.6g}" for line in worked.lines}
    return WorkedNumber(
        name=name,
        formula=f"{name} = {_readable(worked.formula)}",
        substituted=" ".join(values.get(word, word) for word in _spaced(_readable(worked.formula))),
        result=f"{significant(worked.predicted)} {UNITS[run.metric]}",
        inputs=tuple(Input(line.symbol, line.meaning, _value(line), _from(line)) for line in worked.lines),
        python=program(worked),
        note=_NOTE,
    )


def _readable(formula: str) -> str:
    return formula.replace("*", "×")


def _spaced(formula: str) -> list[str]:
    """The formula's words, brackets apart."""
    return formula.replace("(", "( ").replace(")", " )").split()


def _value(line: Line) -> str:
    """A number with its unit, never broken over two lines."""
    if line.unit == "s":
        return format_seconds(line.value).replace(" ", _KEPT)
    if line.unit in {"B", "B/s"}:
        return format_gb(line.value).replace(" ", _KEPT) + line.unit[1:]
    return f"{line.value:,.6g}"


def _from(line: Line) -> str:
    """A sum says what it adds up; the rest says where its numbers come from."""
    if line.symbol in _SUMS:
        return _readable(line.formula)
    return _ORIGINS.get(line.symbol, "shape, data sheet, fit")


def _conditions(judged: JudgedRun) -> list[tuple[str, str]]:
    run = judged.run
    chips = f"{run.devices} × {run.chip.name}" if run.devices > 1 else run.chip.name
    batch = f"{judged.batch:,.0f}" + (", as many as were found to fit" if run.batch is None else "")
    stated = [
        ("model", run.model.name),
        ("chips", chips),
        ("software", plain_text(run.engine_text, 200)),
        ("weights", f"{significant(run.weight_bits)} bits each; {FACETS['format'](judged)[0]}"),
        ("KV cache", f"{significant(run.kv_bits)} bits each"),
        ("sequences at once", batch + (", requests come one after another" if run.serving else "")),
        ("prompt and answer", f"{run.input_tokens:,.0f} and {run.output_tokens:,.0f} tokens"),
        ("published", f"{significant(run.value, 5)} {UNITS[run.metric]} ({metric_words(run.metric)})"),
        ("year", str(int(run.year))),
        ("source", run.source),
    ]
    return [*stated, ("what the row says", plain_text(run.note, _LONGEST_NOTE))] if run.note else stated
