"""Measured beside predicted, for the runs of a lesson: here and now, or recorded elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.lab.compare import compare
from core.lab.record import RunRecord
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Measure
from core.lesson.measures import CHECKS, MEASURES, MeasuredRow
from core.ui import print_view, side_by_side
from core.ui.lab import files, runs, service
from core.ui.lab.watch import period_s, watch
from core.ui.lesson import measuring, recorded
from core.ui.plain import plain
from core.ui.side_by_side import Quantity
from core.ui.state_card import state_card


def show(lesson: Lesson) -> None:
    """Draw the beat in the state it is in."""
    heading(lesson)
    measuring.advance(lesson)
    if runs.job() is not None:
        _under_way(lesson)
        return
    here, elsewhere = measuring.records(lesson), recorded.records(lesson)
    _at_rest(measuring.trouble(lesson), here, elsewhere)
    if not print_view.is_on():
        _button(lesson, "Measure again" if here else "Measure here")
    if found := here or elsewhere:
        _results(lesson, found)


def heading(lesson: Lesson) -> None:
    """What the beat is called, and what is measured."""
    st.header("Measured beside predicted", anchor=False)
    st.markdown(plain(lesson.measurement.words))


def _button(lesson: Lesson, label: str) -> None:
    st.button(
        label,
        icon=":material/speed:",
        key=f"{lesson.id}_measure",
        help="Runs in a process of its own on this server, one visitor after the other.",
        on_click=measuring.start,
        args=(lesson,),
    )


def _under_way(lesson: Lesson) -> None:
    """The run that goes on now, drawn on a timer, and a way to stop it."""
    st.caption(plain(_which(lesson)))
    lab, device = service.lab(), lesson.measurement.runs[0].request.device
    period = period_s(lab, lab.status(device))
    if period is not None:
        st.fragment(_watch, key="lesson_watch", run_every=period)(lab, device, period)
    st.button("Cancel", icon=":material/stop:", key=f"{lesson.id}_cancel", on_click=measuring.cancel)


def _watch(lab: service.Lab, device: str, period: float) -> None:
    """What is under way; at first also what the measuring process still does before it can begin."""
    status = lab.status(device)
    if status.state != "ready" and status.phase:
        share = "" if status.fraction is None else f" ({status.fraction:.0%})"
        st.caption(plain(f"Once, this computer's speed is measured. Now: {status.phase}{share}."))
    watch(lab, device, period)


def _which(lesson: Lesson) -> str:
    now = measuring.current(lesson)
    if now is None:
        return "A run of yours from the engine lab is still under way. This page's can start after it."
    names = [run.name for run in lesson.measurement.runs]
    if len(names) == 1:
        return "The run of this page, with its prompt:"
    return f"Run {names.index(now.name) + 1} of {len(names)}: {now.name}."


def _at_rest(trouble: str, here: Sequence[RunRecord] | None, elsewhere: Sequence[RunRecord] | None) -> None:
    if trouble:
        state_card("failed", trouble)
    elif here:
        noisy = any(record.noisy for record in here)
        state_card("noisy" if noisy else "measured", _where(here[-1]))
    elif elsewhere:
        noisy = any(record.noisy for record in elsewhere)
        busy = " That host was busy, so the ranges are wide." if noisy else ""
        state_card("recorded", f"{_where(elsewhere[-1])}{busy} Press Measure here for this server's own run.")
    else:
        state_card(
            "nothing", "Press Measure here to run it on this server and hold it against the prediction."
        )


def _where(record: RunRecord) -> str:
    return f"{files.when(record)}, {record.model_name}, on {files.where(record)}."


def _results(lesson: Lesson, found: Sequence[RunRecord]) -> None:
    by_name = {run.name: record for run, record in zip(lesson.measurement.runs, found, strict=True)}
    lines = {measure.label: _line(measure, by_name) for measure in lesson.measurement.measures}
    side_by_side.show([line for line in lines.values() if line is not None])
    if missing := [label for label, line in lines.items() if line is None]:
        st.caption(
            plain(
                f"This run has no numbers for: {', '.join(missing)}. A slow host leaves out the timing of "
                "single operators; measure again when it is less busy."
            )
        )
    for check in lesson.measurement.checks:
        checked = CHECKS[check.measure][0]([by_name[name] for name in check.runs])
        sign = ":material/check_circle:" if checked.holds else ":material/error:"
        st.markdown(f"{sign} **{plain(check.label)}**: {plain(checked.sentence)}")
    for name, record in by_name.items():
        said = compare(record).sentence
        st.caption(plain(said if len(by_name) == 1 else f"{name.capitalize()}: {said}"))
    _texts(lesson, by_name)


def _line(measure: Measure, by_name: dict[str, RunRecord]) -> Quantity | None:
    row: MeasuredRow | None = MEASURES[measure.measure][0]([by_name[name] for name in measure.runs])
    if row is None:
        return None
    predicted = row.predicted.value
    return Quantity(
        name=measure.label,
        meaning=row.about,
        predicted=row.predicted.text,
        measured=row.measured.text,
        ratio=row.ratio,
        spread=None if row.low == row.high else (row.low.value / predicted, row.high.value / predicted),
    )


def _texts(lesson: Lesson, by_name: dict[str, RunRecord]) -> None:
    part = print_view.fold("What the model wrote", key=f"{lesson.id}_texts")
    if part.open:
        with part.place:
            for name, record in by_name.items():
                st.caption(plain(f"{name.capitalize()}: {record.output_tokens} tokens"))
                st.markdown(plain(record.text) or "The model wrote nothing.")
