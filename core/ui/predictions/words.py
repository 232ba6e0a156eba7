"""The page's words: rows, errors and groups in sentences."""

from __future__ import annotations

from typing import Final

from core.analytic.prediction_range import regime_of_run
from core.analytic.validation.error_table import UNITS, Errors, metric_words
from core.analytic.validation.judged import JudgedRun
from core.units import format_count, significant

#: Regime -> what its marks are called; a row has one, and a range of its own.
KINDS: Final = {
    "decode_single": "one user, one chip",
    "decode_parallel": "one user, several chips",
    "decode_batch": "a batch",
    "prefill": "prompts (prefill, TTFT)",
    "eager": "eager frameworks",
    "processor": "processors",
}


def kind_of(judged: JudgedRun) -> str:
    """Which mark a row gets."""
    return KINDS[regime_of_run(judged.run)]


def errors_sentence(found: Errors) -> str:
    """The errors of one class in a sentence.

    >>> errors_sentence(Errors("TTFT", 34, 5, 21.4, 25.7, 52.0, 0.76))
    'TTFT: half are off by more than 21 %, one in ten by more than 52 % (34 rows of 5 sources).'
    """
    return (
        f"{found.name}: half are off by more than {found.median:.0f} %, one in ten by more than "
        f"{found.p90:.0f} % ({rows_and_sources(found)})."
    )


def rows_and_sources(found: Errors) -> str:
    """How many rows and sources.

    >>> rows_and_sources(Errors("MBU", 2, 1, 5.3, 5.3, 6.8, 1.0))
    '2 rows of 1 source'
    """
    rows = format_count(found.rows, "row")
    return f"{rows} of {format_count(found.sources, 'source')}"


def row_name(judged: JudgedRun) -> str:
    """A row with its id, in a few words."""
    return f"{judged.run.id}: {row_words(judged)}"


def row_words(judged: JudgedRun) -> str:
    """What ran where, and how."""
    run = judged.run
    chips = f"{run.devices} × " if run.devices > 1 else ""
    batch = "as many as fit" if run.batch is None else f"batch {run.batch:,.0f}"
    bits = f"{run.weight_bits:.2g}-bit weights"
    return (
        f"{run.model.name} on {chips}{run.chip.name}, {run.engine.name}, {bits}, {batch}, "
        f"{metric_words(run.metric)}"
    )


def off_by(judged: JudgedRun) -> str:
    """How far a prediction is off, with its sign.

    The percentage is of the published number: a rate that is predicted at half is 50 % too low.
    """
    low = judged.predicted < judged.run.value
    return f"{judged.percent_error:.0f} % too {'low' if low else 'high'}"


def both(judged: JudgedRun) -> str:
    """Predicted with its range, and measured, with the unit."""
    unit = UNITS[judged.run.metric]
    low, predicted, high, measured = (
        significant(value) for value in (judged.low, judged.predicted, judged.high, judged.run.value)
    )
    where = "inside" if judged.in_range else "outside"
    return (
        f"Predicted {predicted} {unit} ({low} to {high}), measured {measured}: {off_by(judged)}, {where} the "
        "range."
    )
