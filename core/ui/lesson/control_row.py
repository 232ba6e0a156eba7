"""A lesson's controls, at most four: fields of the visitor's scenario, or settings of the page's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lesson.amount import SCENARIO_FIELDS, LessonCase, Value
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Control
from core.lesson.option_name import option_name
from core.lesson.parts import parts
from core.lesson.quantities.memory_levels import TITLES
from core.ui.lesson import link
from core.ui.plain import plain
from core.ui.scenario import record
from core.ui.words import operator_name

#: Steps between a power of two and the next, as factors.
_STEPS: Final = (1.0, 1.5)
_LINEAR_STOPS: Final = 41
#: An option of more letters is cut off where more than two controls share a row.
_LONG_OPTION: Final = 16
#: Degrees of a plan that decide how many chips a replica has.
_DEGREES: Final = frozenset({"tp", "pp"})


def case(lesson: Lesson) -> LessonCase:
    """What the pictures and the worked numbers show: the visit's scenario with the page's settings."""
    mine = record.case_of(record.current())
    return lesson.page_case(mine.scenario, mine.model, mine.machine, link.current(lesson).values)


def show(lesson: Lesson) -> None:
    """Draw the controls in reading order: those with a scale in one row, then the switches."""
    values = _values(lesson)
    scales = [control for control in lesson.controls if control.kind != "switch"]
    for row in _in_rows(scales):
        for column, control in zip(st.columns(len(row)), row, strict=True):
            with column:
                _draw(lesson, control, values[control.name])
    for control in lesson.controls:
        if control.kind == "switch":
            _draw(lesson, control, values[control.name])


def _in_rows(controls: Sequence[Control]) -> list[Sequence[Control]]:
    """All side by side; two in a row where an option's name is too long for that."""
    long = any(len(option_name(option)) > _LONG_OPTION for control in controls for option in control.options)
    most = 2 if long else max(len(controls), 1)
    return [controls[start : start + most] for start in range(0, len(controls), most)]


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
        st.selectbox(
            label,
            offered(control, str(value)),
            format_func=option_name,
            key=key,
            help=hint,
            on_change=_changed,
            args=args,
        )
    elif control.kind == "part":
        _draw_part(lesson, control, str(value), key)
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


def _draw_part(lesson: Lesson, control: Control, value: str, key: str) -> None:
    """The parts of today's picture; one that it lacks gives way to the first."""
    try:
        known = parts(lesson, case(lesson))
    except UserError:  # the picture says it
        return
    st.session_state[key] = value if value in known else known[0]
    st.selectbox(
        plain(control.label),
        known,
        format_func=_part_name,
        key=key,
        help=plain(control.help),
        on_change=_changed,
        args=(lesson, control),
    )


def _part_name(name: str) -> str:
    return TITLES.get(name) or operator_name(name)


def picker(lesson: Lesson) -> Callable[[str], None] | None:
    """What a click on a mark of the picture does; None where the lesson has no control for it."""
    control = next((control for control in lesson.controls if control.kind == "part"), None)
    return None if control is None else partial(_pick, lesson, control)


def _pick(lesson: Lesson, control: Control, name: str) -> None:
    if link.is_part(name):
        link.change(lesson, control.name, name)


def offered(control: Control, value: str) -> list[str]:
    """The options of a choice, today's value among them: the scenario may hold one that is not listed.

    >>> from core.lesson.lesson_file import lessons
    >>> offered(lessons()["roofline"].controls[1], "fp16")
    ['bf16', 'int8', 'int8-dynamic', 'int4', 'fp16']
    """
    return [*control.options, *([] if value in control.options else [value])]


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
    if control.name in _DEGREES:
        record.split(**{control.name: value})
    elif control.name in SCENARIO_FIELDS:
        record.change(**{control.name: value})
    elif value is not None:
        link.change(lesson, control.name, value)
