"""What serving a trace comes to: predicted beside measured, by request, by step, and what is equal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

import streamlit as st

from core.catalog.formats import number_format
from core.lab.serve_record import ServeRecord, Service
from core.lesson.measures import Checked
from core.ui import export, side_by_side
from core.ui.figures.requests import letter
from core.ui.lab.many.settings import way_name
from core.ui.lab.many.shown import Shown
from core.ui.lesson import trial
from core.ui.plain import plain
from core.ui.side_by_side import Quantity
from core.ui.table import Blank, Cell
from core.units import format_gib, format_seconds, significant

_MS: Final = 1e3
#: Rows of a table of steps at one time.
_MOST_ROWS: Final = 100
_STEP_COLUMNS: Final = (
    "step",
    "kind",
    "requests",
    "new tokens",
    "context",
    "blocks held",
    "blocks free",
    "waiting",
    "lost their blocks",
    "tokens shared",
    "ms",
)


def headline(expected: Shown, served: Shown | None) -> None:
    """Steps, times and memory of one way, predicted and, where it was served, measured."""
    steps = None if served is None else len(served.steps)
    total_s = None if served is None else served.total_s
    side_by_side.show(
        [
            _count("steps", "passes of the model", len(expected.steps), steps),
            _seconds("total time", "until the last token", expected.total_s, total_s),
            _seconds("TTFT", "mean time to first token", _ttft(expected), _ttft(served)),
            _seconds("TPOT", "mean time per later token", _tpot(expected), _tpot(served)),
            _rate(expected, served),
            _memory(expected, served),
        ]
    )


def badges(record: ServeRecord) -> None:
    """Whether outputs are equal in both ways, and whether each step is the simulator's."""
    if len(record.services) > 1:
        _equal_outputs(record)
    for service in record.services:
        if record.request.guesses_of(service.way):
            continue
        said = record.difference(service)
        words = f"no. {way_name(service.way)}: {said}." if said else _same_steps(service)
        trial.check("Equal to the simulator", Checked(not said, words))


def _same_steps(service: Service) -> str:
    many = len(service.steps)
    return f"yes, {way_name(service.way)}: all {many} steps, with their requests, tokens and blocks."


def _equal_outputs(record: ServeRecord) -> None:
    """Found out from the tokens in the record; where formats round, unequal is no fault."""
    weights, many = record.request.weights, record.request.trace.requests
    names = "; ".join(way_name(service.way) for service in record.services)
    same = many - len(record.unequal_requests)
    said = f"{same} of {many} requests have the same tokens, in {weights}. Compared: {names}."
    if record.equal_outputs or _is_exact(record):
        trial.check("Equal outputs", Checked(record.equal_outputs, said))
        return
    others = ", ".join(letter(request) for request in record.unequal_requests)
    why = (
        f"{said} Others: {others}. Here numbers are rounded, and a product of several rows may round "
        "otherwise than one of a single row. Where two tokens are nearly as likely, that decides, and "
        "the answer goes on otherwise. Choose fp32 for weights and cache to see them equal."
    )
    st.markdown(f":material/difference: **Equal outputs**: {plain(why)}")


def _is_exact(record: ServeRecord) -> bool:
    """Whether weights, activations and cache are all fp32."""
    weights = number_format(record.request.weights, "weights")
    return {weights.id, weights.activations, record.request.kv} == {"fp32"}


def requests_table(shown: Sequence[Shown], record: ServeRecord | None) -> None:
    """Each request: when it comes, its lengths, its times in each way, and whether its tokens are equal."""
    arrivals = shown[0].request.arrivals()
    timed = [one for one in shown if one.times]
    different = set(record.unequal_requests) if record is not None and len(shown) > 1 else None
    names = [f"{what} ms, {one.name}" for one in timed for what in ("TTFT", "TPOT")]
    columns = ("request", "comes in step", "prompt", "answer", *names)
    rows: list[tuple[Cell, ...]] = []
    for index, arrival in enumerate(arrivals):
        times = [cell for one in timed for cell in _times(one, index)]
        lengths = (arrival.step + 1, arrival.prompt_tokens, arrival.new_tokens)
        equal = () if different is None else ("no" if index in different else "yes",)
        rows.append((letter(index), *lengths, *times, *equal))
    export.show_table(
        columns if different is None else (*columns, "equal outputs"),
        rows,
        key="serve_requests_table",
        file_name="requests",
        label="Requests of the trace",
    )


def _times(shown: Shown, index: int) -> tuple[Cell, Cell]:
    one = shown.times[index]
    return one.ttft_s * _MS, Blank.DOES_NOT_APPLY if one.tpot_s is None else one.tpot_s * _MS


def steps_table(shown: Shown, key: str) -> None:
    """Every step of one way; of many, so many at one time."""
    first = 0
    if len(shown.steps) > _MOST_ROWS:
        first = int(st.number_input("From step", 1, len(shown.steps), step=_MOST_ROWS, key=f"{key}_from")) - 1
    places = range(first, min(first + _MOST_ROWS, len(shown.steps)))
    export.show_table(
        _STEP_COLUMNS,
        [_step(shown, place) for place in places],
        key=key,
        file_name="steps",
        label=f"Steps, {shown.name}, {shown.source}",
    )


def _step(shown: Shown, place: int) -> tuple[Cell, ...]:
    counts = shown.counts[place]
    return (
        shown.steps[place].now + 1,
        counts.kind,
        counts.num_sequences,
        counts.new_tokens,
        counts.context_tokens,
        counts.pages_used,
        counts.pages_free,
        counts.num_waiting,
        counts.num_preempted,
        counts.shared_tokens,
        shown.steps_s[place] * _MS if shown.steps_s else Blank.DOES_NOT_APPLY,
    )


def _count(name: str, meaning: str, expected: int, served: int | None) -> Quantity:
    measured, ratio = ("", None) if served is None else (f"{served:,}", served / expected)
    return Quantity(name, meaning, f"{expected:,}", measured, ratio)


def _seconds(name: str, meaning: str, expected_s: float | None, served_s: float | None) -> Quantity:
    return Quantity(
        name,
        meaning,
        "" if expected_s is None else format_seconds(expected_s),
        "" if served_s is None else format_seconds(served_s),
        served_s / expected_s if expected_s and served_s is not None else None,
    )


def _rate(expected: Shown, served: Shown | None) -> Quantity:
    tokens = sum(arrival.new_tokens for arrival in expected.request.arrivals())
    predicted = tokens / expected.total_s if expected.total_s else None
    measured = tokens / served.total_s if served is not None and served.total_s else None
    return Quantity(
        "tokens/s",
        "of all requests together",
        "" if predicted is None else significant(predicted),
        "" if measured is None else significant(measured),
        measured / predicted if measured and predicted else None,
    )


def _memory(expected: Shown, served: Shown | None) -> Quantity:
    def most(shown: Shown) -> float:
        return max(counts.pages_used for counts in shown.counts) * shown.size.block_bytes

    wanted, seen = most(expected), None if served is None else most(served)
    meaning = f"cache held at most, of {format_gib(expected.size.blocks * expected.size.block_bytes)}"
    if seen is None:
        return Quantity("memory", meaning, format_gib(wanted))
    return Quantity("memory", meaning, format_gib(wanted), format_gib(seen), seen / wanted)


def _ttft(shown: Shown | None) -> float | None:
    return fmean(one.ttft_s for one in shown.times) if shown is not None and shown.times else None


def _tpot(shown: Shown | None) -> float | None:
    times_s = [one.tpot_s for one in shown.times if one.tpot_s is not None] if shown is not None else []
    return fmean(times_s) if times_s else None
