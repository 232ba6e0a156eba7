"""Two runs side by side: what was asked otherwise, what each took, predicted and measured, and the ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Final

import streamlit as st

from core.lab.compare import compare, prediction_beside
from core.lab.record import RunRecord
from core.lab.record_parts import HostRecord
from core.lab.request import RunRequest
from core.ui import export, picture, print_view, prose
from core.ui.figures.operator_times import operator_times
from core.ui.lab import comparison, files, runs
from core.ui.series import Gap
from core.ui.table import Blank, Cell
from core.ui.words import operator_name
from core.units import MIB

_MS: Final = 1e3
_NAMES: Final = ("A", "B")
_LONGEST: Final = 60
#: What may differ between two machines, in words.
_MACHINE: Final = {
    "device": "device",
    "device_name": "device",
    "cpu": "processor",
    "cores": "cores",
    "threads": "threads",
    "torch_version": "torch",
    "system": "system",
}
#: A quantity's name, predicted and measured; a value is None where there is none.
Row = tuple[str, float | None, float | None]


def show() -> None:
    """Draw the choice of two runs and their comparison; nothing while there are fewer."""
    known = [*runs.records(), *runs.files()]
    if len(known) < len(_NAMES):
        return
    st.header("Two runs side by side", anchor=False)
    one, other = (known[place] for place in _chosen(known))
    _differences(one, other)
    _quantities(one, other)
    both_write = one.prediction.decode is not None and other.prediction.decode is not None
    phase = "decode" if both_write and st.session_state.get("lab_phase") != "prefill" else "prefill"
    _bars((one, other), phase)


def _chosen(known: Sequence[RunRecord]) -> list[int]:
    """The places of the two; at first the latest two."""
    own, places = len(runs.records()), []
    words = [f"{files.when(r)}, {files.what(r)}{'' if i < own else ' (file)'}" for i, r in enumerate(known)]
    for name, column, first in zip(_NAMES, st.columns(2), (-2, -1), strict=True):
        with column:
            key = f"lab_two_{name.lower()}"
            if st.session_state.get(key, len(known)) >= len(known):
                st.session_state.pop(key, None)
            chosen = st.selectbox(
                f"Run {name}",
                range(len(known)),
                index=len(known) + first,
                format_func=words.__getitem__,
                key=key,
            )
            places.append(int(chosen))
    return places


def _differences(one: RunRecord, other: RunRecord) -> None:
    """What was asked otherwise, and whether the machines are the same."""
    rows = [
        (field.name.replace("_", " "), *values)
        for field in fields(RunRequest)
        if (values := _two(one.request, other.request, field.name))
    ]
    if rows:
        export.show_table(
            ("setting", "run A", "run B"),
            rows,
            key="lab_two_settings",
            file_name="settings-of-two-runs",
            label="Settings that differ",
        )
    else:
        prose.paragraph("Both runs have the same settings.")
    if said := _machines(one.host, other.host):
        prose.paragraph(
            f"The machines differ: {said}. A ratio between the runs then compares machines too.",
            strong="Not the same machine.",
        )
    for name, record in zip(_NAMES, (one, other), strict=True):
        if record.noisy:
            prose.small(f"Run {name} is noisy: {'; '.join(record.noisy)}. Its times are not to be trusted.")


def _two(one: Any, other: Any, name: str) -> tuple[str, ...]:  # noqa: ANN401 - any two records of one kind
    """Both values in words where they differ; nothing where they are the same."""
    values = getattr(one, name), getattr(other, name)
    if values[0] == values[1]:
        return ()
    words = (str(value) for value in values)
    return tuple(word if len(word) <= _LONGEST else f"{word[:_LONGEST]} …" for word in words)


def _machines(one: HostRecord, other: HostRecord) -> str:
    found = [
        f"{words} {' and '.join(values)}"
        for name, words in _MACHINE.items()
        if (values := _two(one, other, name)) and all(values)
    ]
    return ", ".join(found)


def _quantities(one: RunRecord, other: RunRecord) -> None:
    columns = (
        "quantity",
        *(f"{name}, {kind}" for name in _NAMES for kind in ("predicted", "measured")),
        "B / A, predicted",
        "B / A, measured",
    )
    rows: list[tuple[Cell, ...]] = []
    for (name, *first), (_, *second) in zip(_rows(one), _rows(other), strict=True):
        ratios = [_ratio(b, a) for a, b in zip(first, second, strict=True)]
        rows.append((name, *map(_cell, (*first, *second, *ratios))))
    export.show_table(columns, rows, key="lab_two_quantities", file_name="two-runs", label="Both runs")


def _rows(record: RunRecord) -> list[Row]:
    prediction, compared = prediction_beside(record), compare(record)
    tpot_s = compared.tpot.measured_s if compared.tpot else None
    peak = record.measured.peak_memory_bytes
    return [
        ("TTFT, ms", prediction.ttft_s * _MS, compared.ttft.measured_s * _MS),
        ("TPOT, ms", _times(prediction.tpot_s, _MS), _times(tpot_s, _MS)),
        ("tokens/s", prediction.tokens_per_s, 1 / tpot_s if tpot_s else None),
        ("MBU, %", _times(prediction.mbu, 100), _times(record.mbu, 100)),
        ("memory, MiB", prediction.total_memory_bytes / MIB, peak / MIB if peak else None),
    ]


def _bars(both: tuple[RunRecord, RunRecord], phase: str) -> None:
    rows = [comparison.gaps(prediction_beside(record), record, phase) for record in both]
    for name, column, mine in zip(_NAMES, st.columns(2), rows, strict=True):
        with column:
            drawn = operator_times(mine, phase)
            title = f"Run {name}: {drawn.title[0].lower()}{drawn.title[1:]}"
            picture.show(replace(drawn, title=title), key=f"lab_two_bars_{name.lower()}_{phase}")
    part = print_view.fold("Both runs, operator by operator", key="lab_two_fold", icon=":material/table:")
    if part.open:
        with part.place:
            _operators(rows, phase)


def _operators(rows: Sequence[Sequence[Gap]], phase: str) -> None:
    """Every operator of both runs, and the ratio between them."""
    first, second = ({row.name: row for row in mine} for mine in rows)
    names = list(dict.fromkeys([*first, *second]))
    export.show_table(
        ("operator", "A ms", "B ms", "B / A, measured", "B / A, predicted"),
        [_operator(name, first.get(name), second.get(name)) for name in names],
        key=f"lab_two_operators_{phase}",
        file_name="operators-of-two-runs",
        label="Operators of both runs",
    )


def _operator(name: str, one: Gap | None, other: Gap | None) -> tuple[Cell, ...]:
    measured = [None if row is None else row.measured_s for row in (one, other)]
    predicted = [None if row is None else row.predicted_s for row in (one, other)]
    ratios = [_ratio(pair[1], pair[0]) for pair in (measured, predicted)]
    return (operator_name(name), *(_cell(_times(value, _MS)) for value in measured), *map(_cell, ratios))


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None


def _cell(value: float | None) -> Cell:
    return Blank.DOES_NOT_APPLY if value is None else value
