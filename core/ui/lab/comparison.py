"""Predicted beside measured: tiles, two pictures, the verdict in a sentence, and the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import streamlit as st

from core.analytic.operators import operators
from core.lab.compare import Comparison, Ratio, compare
from core.lab.predict import Prediction
from core.lab.record import RunRecord
from core.lab.request import EMBEDDED_MODEL
from core.ui import picture, side_by_side, worked_number
from core.ui.figures.operator_times import Order, operator_times
from core.ui.figures.step_times import CACHED, RECOMPUTED, step_times
from core.ui.lab import arithmetic, models, operator_source
from core.ui.lab.arithmetic import Case, numbers_of
from core.ui.lab.prediction_words import how_predicted
from core.ui.palette import PART_OF_KIND
from core.ui.plain import plain
from core.ui.series import Gap
from core.ui.side_by_side import Quantity
from core.units import format_gib, format_seconds, significant

_PHASES: Final = {"decode": "writing (decode)", "prefill": "reading the prompt (prefill)"}
_ORDERS: Final[dict[Order, str]] = {"gap": "largest gap first", "run": "as they run"}
_MEANINGS: Final = {
    "TTFT": "time to first token: reading the prompt",
    "TPOT": "time per output token, after the first",
    "tokens/s": "tokens written per second",
    "MBU": "memory bandwidth used while writing",
    "memory": "weights, KV cache and activations",
}


def headline(prediction: Prediction | None, record: RunRecord | None) -> None:
    """The five numbers of a run, predicted and, where there is a record, measured."""
    compared = None if record is None else compare(record)
    if prediction is None:
        side_by_side.show([Quantity(name, meaning) for name, meaning in _MEANINGS.items()])
        return
    side_by_side.show(
        [
            _time("TTFT", prediction.ttft_s, compared.ttft if compared else None),
            _time("TPOT", prediction.tpot_s, compared.tpot if compared else None),
            _rate(prediction, compared),
            _share(prediction, record),
            _memory(prediction, record),
        ]
    )


def steps(prediction: Prediction, record: RunRecord | None, *, cached: bool) -> None:
    """The picture of the time of each token, with a KV cache or without."""
    measured = None
    if record is not None:
        measured = np.array([step.host_s for step in record.steps if step.kind == "decode"])
    reason = CACHED if cached else RECOMPUTED
    picture.show(step_times(np.array(prediction.decode_step_s), measured, reason), key="lab_steps")


def by_operator(prediction: Prediction, record: RunRecord | None) -> None:
    """The picture of one pass by operator; the phase is the visitor's choice."""
    with st.container(horizontal=True, gap="medium"):
        phase = st.segmented_control(
            "Phase",
            list(_PHASES) if prediction.decode else ["prefill"],
            default="decode" if prediction.decode else "prefill",
            required=True,
            format_func=_PHASES.__getitem__,
            key="lab_phase",
            persist_state="session",
        )
        order = st.segmented_control(
            "Order",
            list(_ORDERS),
            default="gap",
            required=True,
            format_func=_ORDERS.__getitem__,
            key="lab_order",
            persist_state="session",
        )
    phase = phase if prediction.decode and phase == "decode" else "prefill"
    drawn = operator_times(gaps(prediction, record, phase), phase, "run" if order == "run" else "gap")
    picture.show(drawn, key=f"lab_operators_{phase}")
    if record is not None:
        operator_source.show(record, phase)


def verdict(record: RunRecord) -> None:
    """What the comparison comes to, and why where the two differ."""
    compared = compare(record)
    signs = {
        "agrees": ":material/check_circle:",
        "differs": ":material/compare_arrows:",
        "noisy": ":material/grain:",
    }
    st.markdown(f"{signs[compared.verdict]} {plain(compared.sentence)}")
    st.caption(how_predicted(record))
    st.caption(how_measured(record))


def how_measured(record: RunRecord) -> str:
    """What the measured numbers are, in words: which repeats, and what their ranges mean."""
    prefills, steps = len(record.measured.prefill_repeats_s), len(record.measured.decode_repeats_s)
    words = [
        f"Measured TTFT is the median of {prefills} prefills repeated after the run."
        if prefills
        else "Measured TTFT is the one prefill of the run itself, so it has no range."
    ]
    if steps:
        between = format_seconds(record.between_steps_s)
        words.append(
            f"Measured TPOT is the median of {steps} steps repeated at the middle of the answer, plus "
            f"{between}, the time between two steps while you watched."
        )
    if record.measured.tpot_s is not None:
        seen = format_seconds(record.measured.tpot_s)
        words.append(f"While you watched, a token after the first took {seen} on average.")
    words.append(
        "Operators are timed one by one in passes of their own, and their times scaled to what a plain step "
        "took. Measured memory also holds the rotary tables and room for gathered keys and values."
    )
    words.append(
        "Ranges go from p10 to p90"
        + ("; those of TTFT and TPOT are wider, because the run is noisy." if record.noisy else ".")
    )
    return " ".join(words)


def work_out(case: Case) -> None:
    """The worked numbers, one at a time."""
    names = numbers_of(case)
    name = st.segmented_control(
        "Number to work out",
        names,
        default="TPOT" if "TPOT" in names else "TTFT",
        required=True,
        key="lab_worked",
        persist_state="session",
    )
    # What the browser sends is checked here; its options are only what it offered.
    chosen = name if name in names else "TTFT"
    worked_number.show(arithmetic.worked_number(case, chosen), key="lab_worked_number")


def _time(name: str, predicted_s: float | None, ratio: Ratio | None) -> Quantity:
    return Quantity(
        name,
        _MEANINGS[name],
        "no such token" if predicted_s is None else format_seconds(predicted_s),
        "" if ratio is None else format_seconds(ratio.measured_s),
        None if ratio is None else ratio.ratio,
        None if ratio is None or ratio.low_s == ratio.high_s else ratio.range,
    )


def _rate(prediction: Prediction, compared: Comparison | None) -> Quantity:
    predicted = prediction.tokens_per_s
    tpot = compared.tpot if compared else None
    return Quantity(
        "tokens/s",
        _MEANINGS["tokens/s"],
        "no such token" if predicted is None else significant(predicted),
        "" if tpot is None else significant(1 / tpot.measured_s),
        None if tpot is None or predicted is None else 1 / tpot.measured_s / predicted,
    )


def _share(prediction: Prediction, record: RunRecord | None) -> Quantity:
    predicted, measured = prediction.mbu, None if record is None else record.mbu
    return Quantity(
        "MBU",
        _MEANINGS["MBU"],
        "no such token" if predicted is None else f"{predicted:.0%}",
        "" if measured is None else f"{measured:.0%}",
        measured / predicted if measured and predicted else None,
    )


def _memory(prediction: Prediction, record: RunRecord | None) -> Quantity:
    predicted, measured = prediction.total_memory_bytes, None
    if record is not None:
        measured = record.measured.peak_memory_bytes
    return Quantity(
        "memory",
        _MEANINGS["memory"],
        format_gib(predicted),
        "" if measured is None else format_gib(measured),
        measured / predicted if measured and predicted else None,
    )


def gaps(prediction: Prediction, record: RunRecord | None, phase: str) -> list[Gap]:
    """Each operator of a phase, in the order in which they run, predicted and where it was run measured."""
    predicted = prediction.prefill if phase == "prefill" or prediction.decode is None else prediction.decode
    rows: Sequence[Ratio] = ()
    if record is not None:
        compared = compare(record)
        rows = compared.prefill if phase == "prefill" else compared.decode
    measured = {row.name: row for row in rows}
    parts = _parts()
    return [
        _gap(name, parts.get(name, "activations"), seconds, measured.get(name))
        for name, seconds in predicted.operators_s.items()
    ]


def _gap(name: str, part: str, predicted_s: float, row: Ratio | None) -> Gap:
    if row is None:
        return Gap(name, part, predicted_s)
    return Gap(name, part, predicted_s, row.measured_s, row.low_s, row.high_s)


@cache
def _parts() -> dict[str, str]:
    """Operator -> the part whose bytes it mostly moves; the operators of all dense models are the same."""
    table = operators(
        models.spec(EMBEDDED_MODEL), batch=1, new_tokens=1, context=1, weights="bf16", kv="bf16"
    )
    return {name: PART_OF_KIND[kind] for name, kind in zip(table.names, table.kinds, strict=True)}
