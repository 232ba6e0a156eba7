"""A server's figures beside their prediction: the table, the picture, what must be said, and the file."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab.endpoint.notes import notes
from core.lab.endpoint.prediction import EndpointPrediction
from core.lab.endpoint.record import EndpointRecord, dumps
from core.lab.endpoint.request import EndpointRequest
from core.lab.endpoint.row import Level
from core.ui import export, picture, prose
from core.ui.figures.token_gaps import Gaps, token_gaps
from core.ui.lab import saving
from core.ui.table import Blank, Cell

_MS: Final = 1000.0
COLUMNS: Final = ("at once: quantity", "predicted", "measured", "p90", "p99", "ratio")
_TIMES: Final = ("ttft_s", "tpot_s", "itl_s")
_RATES: Final = {"output_tokens_per_s": "tokens/s", "requests_per_s": "requests/s"}
_EXPLAINED: Final = (
    "Measured times are medians, and the ratio is measured / predicted. TTFT: from sending a request to the "
    "first part of its answer. TPOT: (last part - first part) / (tokens - 1). ITL: between two parts of one "
    "answer. Rates count everything from the first request of a level to its last answer; predicted are "
    "those of a server that is always full."
)


def show(asked: EndpointRequest, predicted: EndpointPrediction | None, record: EndpointRecord | None) -> None:
    """Draw the figures of a record, or what is predicted before there is one.

    Args:
        asked: what the controls ask for; a record has its own.
        predicted: for that.
        record: the last measurement; None before the first.
    """
    if record is not None:
        asked, predicted = record.request, record.prediction
    st.header("Measured beside predicted", anchor=False)
    prose.small(_conditions(asked, predicted, record))
    left, right = st.columns([7, 5], gap="medium")
    with left:
        rows = table(asked, predicted, record)
        label = "Measured beside predicted"
        export.show_table(COLUMNS, rows, key="endpoint_table", file_name="server", label=label)
    with right:
        _picture(predicted, record)
    violations = predicted.violations if predicted else ()
    prose.bullets((*violations, *(notes(record) if record else ())))
    prose.small(_EXPLAINED)
    if record is not None:
        _save(record)


def _picture(predicted: EndpointPrediction | None, record: EndpointRecord | None) -> None:
    if record is None:
        st.skeleton(height=260)
        return
    gaps = [_gaps(level, predicted) for level in record.levels if len(level.gaps_s)]
    if gaps:
        picture.show(token_gaps(gaps), key="endpoint_gaps")


def table(
    asked: EndpointRequest, predicted: EndpointPrediction | None, record: EndpointRecord | None
) -> list[tuple[Cell, ...]]:
    """A row for each figure of each level; times in milliseconds, as their names say."""
    levels = {level.concurrency: level for level in record.levels} if record else {}
    rows: list[tuple[Cell, ...]] = []
    for concurrency in asked.levels:
        level = levels.get(concurrency)
        found = predicted.at(concurrency) if predicted else None
        for name in _TIMES:
            said = None if found is None else getattr(found, name, None)
            rows.append((f"{concurrency}: {name[:-2].upper()}, ms", *_time(level, name, said, record)))
        for name, label in _RATES.items():
            said = None if found is None else getattr(found, name)
            rows.append((f"{concurrency}: {label}", *_rate(level, name, said, record)))
    return rows


def _time(
    level: Level | None, name: str, predicted_s: float | None, record: EndpointRecord | None
) -> tuple[Cell, ...]:
    first: Cell = Blank.DOES_NOT_APPLY if predicted_s is None else predicted_s * _MS
    found = None if level is None else level.summary()[name]
    if found is None:
        missing = Blank.NOT_YET if record is None else Blank.DOES_NOT_APPLY
        return (first, missing, missing, missing, Blank.DOES_NOT_APPLY)
    ratio: Cell = found["p50"] / predicted_s if predicted_s else Blank.DOES_NOT_APPLY
    return (first, *(found[rank] * _MS for rank in ("p50", "p90", "p99")), ratio)


def _rate(
    level: Level | None, name: str, predicted: float | None, record: EndpointRecord | None
) -> tuple[Cell, ...]:
    first: Cell = Blank.DOES_NOT_APPLY if predicted is None else predicted
    none = Blank.DOES_NOT_APPLY
    found = None if level is None else level.summary()[name]
    if found is None:
        return (first, Blank.NOT_YET if record is None else none, none, none, none)
    return (first, found, none, none, found / predicted if predicted else none)


def _conditions(
    asked: EndpointRequest, predicted: EndpointPrediction | None, record: EndpointRecord | None
) -> str:
    load = (
        f"{asked.requests:,} requests a level, {asked.prompt_tokens:,} prompt and {asked.output_tokens:,} "
        f"output tokens, seed {asked.seed}, {asked.api}."
    )
    if record is not None:
        software = f" ({record.server.software})" if record.server.software else ""
        load = f"{record.server.model} at {asked.host}{software}: {load} Measured from {record.client.cpu}."
    if predicted is None:
        return f"{load} Nothing is predicted: say which model runs behind the server, and on what."
    told = predicted.deployment
    return (
        f"{load} Predicted for {told.model} in {told.weights} on {told.count} × {predicted.machine}. "
        f"{predicted.notes[0]}"
    )


def _gaps(level: Level, predicted: EndpointPrediction | None) -> Gaps:
    found = predicted.at(level.concurrency) if predicted else None
    return Gaps(level.concurrency, level.gaps_s, None if found is None else found.tpot_s)


def _save(record: EndpointRecord) -> None:
    saving.button(
        "Save this measurement",
        lambda: dumps(record),
        "server",
        record.created_at,
        key="endpoint_save",
        help="A JSON file with the load, the prediction and every request. It holds no key, no text, and of "
        "the address only the host.",
    )
