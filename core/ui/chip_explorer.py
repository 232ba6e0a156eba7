"""Every chip of the catalogue: sort, compare, and see which formats each generation multiplies.

What is chosen here stands in the page's link, beside the settings of the lesson.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from core.catalog.accelerators import COMPUTE_FORMATS, accelerators
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.lesson.lesson_records import Control
from core.lesson.quantities.chip_catalogue import (
    CLASSES,
    COLUMNS,
    ChipRow,
    chip_row,
    chip_rows,
    generations,
)
from core.ui import export, picture, print_view, prose
from core.ui.figures.chip_map import ChipDot, chip_map
from core.ui.lesson import link, measuring, recorded
from core.ui.plain import plain
from core.ui.table import Blank, Cell
from core.units import GB

#: The page whose run places a computer on the map.
_LESSON: Final = "hardware_generations"
#: Formats whose peak stands for a measured computer, the first that it has.
_MULTIPLIED: Final = ("bf16", "fp16", "fp32")
_EVERY: Final = "every kind"
_FIRST_ROWS: Final = 12
_MOST_COMPARED: Final = 4
_IN_HALF: Final = 2
#: Columns of the sorted table; the comparison shows all of them.
_SHOWN: Final = (
    "memory, GB", "bandwidth, GB/s", "16 bits, TFLOP/s", "8 bits, TFLOP/s", "4 bits, TFLOP/s",
)  # fmt: skip


def show() -> None:
    """Draw the explorer. The body of a fragment."""
    lesson = lessons()[_LESSON]
    controls = {control.name: control for control in lesson.beside}
    values = link.current(lesson).values
    st.header("Every chip of the catalogue", anchor=False)
    for column, name in zip(st.columns(3), ("chips_kind", "chips_sort"), strict=False):
        with column:
            _choice(lesson, controls[name], str(values[name]))
    kind, sort_by = str(values["chips_kind"]), str(values["chips_sort"])
    classes = [key for key, name in CLASSES.items() if kind in (_EVERY, name)]
    rows = chip_rows(classes, sort_by)
    _sorted(rows, sort_by)
    chosen = [key for key in str(values["chips_compared"]).split(",") if key][:_MOST_COMPARED]
    _several(lesson, controls["chips_compared"], chosen)
    left, right = st.columns([1, 1], gap="large")
    with left:
        picture.show(chip_map([*_dots(rows, chosen), *_measured()]), key="chips_map")
    # More than two side by side need the whole width.
    with right if len(chosen) <= _IN_HALF else st.container():
        _compare(chosen)
    _formats(classes)


def _choice(lesson: Lesson, control: Control, value: str) -> None:
    # The link owns the value; the widget starts from it at every run.
    st.session_state[control.name] = value
    st.selectbox(
        plain(control.label),
        control.options,
        key=control.name,
        help=plain(control.help),
        on_change=_changed,
        args=(lesson, control),
    )


def _several(lesson: Lesson, control: Control, chosen: list[str]) -> None:
    st.session_state[control.name] = chosen
    st.multiselect(
        plain(control.label),
        list(accelerators()),
        format_func=lambda key: chip_row(key).title,
        max_selections=_MOST_COMPARED,
        key=control.name,
        help=plain(control.help),
        on_change=_changed,
        args=(lesson, control),
    )


def _changed(lesson: Lesson, control: Control) -> None:
    """Put a choice into the link; what a browser sends beyond what was offered is left out."""
    value = st.session_state[control.name]
    if control.kind == "chips":
        known = [key for key in value if key in accelerators()]
        link.change(lesson, control.name, ",".join(known[:_MOST_COMPARED]))
    elif value in control.options:
        link.change(lesson, control.name, value)


def _sorted(rows: Sequence[ChipRow], sort_by: str) -> None:
    names = [name for name in dict.fromkeys((sort_by, *_SHOWN)) if name != "year"]
    places = [list(COLUMNS).index(name) for name in names]
    every = print_view.is_on() or st.toggle(
        f"Show all {len(rows)}", key="chips_all", persist_state="session", disabled=len(rows) <= _FIRST_ROWS
    )
    shown = rows if every else rows[:_FIRST_ROWS]
    export.show_table(
        ("chip", "generation, year", *names),
        [(row.title, _generation(row), *(_cell(row, place) for place in places)) for row in shown],
        key="chips_sorted",
        file_name="chips",
        label=f"Chips, sorted by {sort_by}",
    )
    prose.small(
        "All peaks are dense and all links one direction. An announced chip was measured by nobody but its "
        "maker. A dash: the chip has no such arithmetic."
    )


def _generation(row: ChipRow) -> str:
    year = row.values[list(COLUMNS).index("year")]
    return row.generation if year is None else f"{row.generation}, {year:.0f}"


def _cell(row: ChipRow, place: int) -> Cell:
    """A peak that is absent is not supported; anything else that is absent is unknown."""
    value = row.values[place]
    if value is None and "bits, TFLOP/s" in list(COLUMNS)[place]:
        return Blank.DOES_NOT_APPLY
    return f"{value:.0f}" if list(COLUMNS)[place] == "year" and value is not None else value


def _dots(rows: Sequence[ChipRow], chosen: Sequence[str]) -> list[ChipDot]:
    """The sorted chips, and the chosen ones wherever they belong."""
    listed = {row.id for row in rows}
    every = [*rows, *(chip_row(key) for key in chosen if key not in listed)]
    bandwidth, peak = (list(COLUMNS).index(name) for name in ("bandwidth, GB/s", "16 bits, TFLOP/s"))
    return [
        ChipDot(
            row.name, row.values[bandwidth] or 0.0, row.values[peak] or 0.0, row.announced, row.id in chosen
        )
        for row in every
        if row.values[peak] and row.values[bandwidth]
    ]


def _measured() -> list[ChipDot]:
    """The computer of the page's run, here or where one was recorded, by what its calibration reached."""
    lesson = lessons()[_LESSON]
    here, elsewhere = measuring.records(lesson), recorded.records(lesson)
    found = here or elsewhere
    if not found:
        return []
    calibration, host = found[0].calibration, found[0].host
    peaks = calibration.peak_flops_per_s
    peak = next(peaks[form] for form in (*_MULTIPLIED, *peaks) if form in peaks) / 1e12
    name = "this computer" if here else host.device_name or host.cpu
    return [
        ChipDot(name, calibration.read_bytes_per_s / GB, peak, announced=False, chosen=True, measured=True)
    ]


def _compare(chosen: Sequence[str]) -> None:
    """The chosen chips side by side, and the factor of the last over the first."""
    if not chosen:
        prose.small("Choose chips above to hold them side by side.")
        return
    rows = [chip_row(key) for key in chosen]
    table: list[tuple[Cell, ...]] = []
    for place, name in enumerate(COLUMNS):
        first, last = rows[0].values[place], rows[-1].values[place]
        known = first is not None and last is not None and name != "year"
        factor = last / first if known and first and last else Blank.DOES_NOT_APPLY
        table.append((name, *(_cell(row, place) for row in rows), factor))
    export.show_table(
        ("what", *(row.title for row in rows), "last / first"),
        table,
        key="chips_side_by_side",
        file_name="chips-compared",
        label="Chosen chips side by side",
    )
    _sources(chosen)


def _sources(chosen: Sequence[str]) -> None:
    part = print_view.fold("Where these numbers come from", key="chips_sources")
    if not part.open:
        return
    rows = [
        (
            accelerators()[key].name,
            name.replace("_", " "),
            fact.value,
            fact.unit,
            fact.date,
            fact.note,
            fact.source,
        )
        for key in chosen
        for name, fact in accelerators()[key].facts.items()
    ]
    with part.place:
        export.show_table(
            ("chip", "fact", "value", "unit", "read on", "note", "source"),
            rows,
            key="chips_facts",
            file_name="chip-facts",
            label="Facts and their sources",
        )


def _formats(classes: Sequence[str]) -> None:
    st.subheader("Which formats each generation multiplies", anchor=False)
    export.show_table(
        ("generation", *(f"{name}, TFLOP/s" for name in COMPUTE_FORMATS)),
        [
            (
                g.title,
                *(g.peaks.get(name, Blank.DOES_NOT_APPLY) for name in COMPUTE_FORMATS),
            )
            for g in generations(classes)
        ],
        key="chips_formats",
        file_name="formats-by-generation",
        label="Dense peak of each generation in each format",
    )
    prose.small(
        "The best dense peak among a generation's chips. A dash means that its matrix units do not multiply "
        "this format; weights stored in it are widened first, which saves reading but no arithmetic."
    )
