"""A lesson's controls, at most four: fields of the visitor's scenario, or settings of the page's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from core.lesson.amount import SCENARIO_FIELDS, LessonCase, Value
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Control
from core.ui.lesson import link
from core.ui.plain import plain
from core.ui.scenario import record

#: Steps between a power of two and the next, as factors.
_STEPS: Final = (1.0, 1.5)
_LINEAR_STOPS: Final = 41


def case(lesson: Lesson) -> LessonCase:
    """What the pictures and the worked numbers show: the visit's scenario with the page's settings."""
    mine = record.case_of(record.current())
    return lesson.page_case(mine.scenario, mine.model, mine.machine, link.current(lesson).values)


def show(lesson: Lesson) -> None:
    """Draw the controls in reading order: those with a scale in one row, then the switches."""
    values = _values(lesson)
    scales = [control for control in lesson.controls if control.kind != "switch"]
    for column, control in zip(st.columns(max(len(scales), 1)), scales, strict=False):
        with column:
            _draw(lesson, control, values[control.name])
    for control in lesson.controls:
        if control.kind == "switch":
            _draw(lesson, control, values[control.name])


def _values(lesson: Lesson) -> Mapping[str, Value]:
    scenario = record.current()
    fields = {c.name: getattr(scenario, c.name) for c in lesson.controls if c.name in SCENARIO_FIELDS}
    return {**fields, **link.current(lesson).values}


def _draw(lesson: Lesson, control: Control, value: Value) -> None:
    key = f"{lesson.id}_{control.name}"
    label, hint = plain(control.label), plain(control.help)
    # The record owns the value; the widget starts from it at every run.
    st.session_state[key] = value
    args = (lesson, control)
    if control.kind == "switch":
        st.toggle(label, key=key, help=hint, on_change=_changed, args=args)
    elif control.kind == "choice":
        st.selectbox(label, control.options, key=key, help=hint, on_change=_changed, args=args)
    else:
        st.select_slider(
            label,
            stops(control, int(value)),
            format_func=lambda whole: f"{whole:,}",
            key=key,
            help=hint,
            on_change=_changed,
            args=args,
        )


def stops(control: Control, value: int) -> Sequence[int]:
    """The values that a range offers, its present one among them, wherever that lies.

    >>> from core.lesson.lesson_file import lessons
    >>> stops(lessons()["prefill_and_decode"].controls[2], 1)[:6]
    [1, 2, 3, 4, 6, 8]
    """
    if control.logarithmic:
        powers = range(max(control.high, 1).bit_length())
        steps = {int(2**power * step) for power in powers for step in _STEPS}
    else:
        width = max((control.high - control.low) // (_LINEAR_STOPS - 1), 1)
        steps = set(range(control.low, control.high + 1, width))
    inside = {step for step in steps if control.low <= step <= control.high}
    return sorted(inside | {control.low, control.high, value})


def _changed(lesson: Lesson, control: Control) -> None:
    value = st.session_state[f"{lesson.id}_{control.name}"]
    if control.name in SCENARIO_FIELDS:
        record.change(**{control.name: value})
    elif value is not None:
        link.change(lesson, control.name, value)
