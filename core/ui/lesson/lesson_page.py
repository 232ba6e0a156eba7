"""The template of every lesson: its record's beats in order, and nothing that one lesson alone needs.

Three parts redraw by themselves: what follows from the controls and the prediction, the exercise, and
a run that is under way. Committing a prediction redraws the page once, for the answer layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lesson.amount import LessonCase
from core.lesson.course import course
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.lesson.measures import MEASURES
from core.ui import picture, print_view, prose, source
from core.ui.lesson import (
    choice_beat,
    closing,
    control_row,
    exercise_beat,
    link,
    measured_beat,
    measuring,
    number_beat,
    prediction_beat,
)
from core.ui.lesson.scenes import DRAWN_BY, PICTURES, Scene
from core.ui.plain import plain
from core.ui.scenario import bar, record

#: Controls of a page that shows the split itself.
_SPLIT: Final = frozenset({"tp", "pp", "ep"})
_MEASURED_FOR: Final = "lesson_measured_for"
_ROMAN: Final = ("", "I", "II", "III", "IV", "V")


def show(
    stem: str,
    *,
    measured: Callable[[Lesson], None] = measured_beat.show,
    beside: Callable[[], None] | None = None,
    below: Callable[[LessonCase], None] | None = None,
) -> None:
    """Draw a lesson's page.

    Args:
        stem: the page's file stem, which is the lesson's id.
        measured: draws the beat "measured beside predicted"; a page with an experiment brings its own.
            That may follow the page's controls: the whole page is drawn again where one of them changes.
        beside: draws a part of this page alone, after the template's beats; the body of a fragment.
        below: draws what this page alone has below the controls, for their case.
    """
    lesson = lessons()[stem]
    record.enter(stem)
    comes_in = record.comes_in()
    record.adopt_link(stem)
    link.adopt(lesson, comes_in=comes_in)
    st.fragment(measuring.recognise, key="lesson_visit")(lesson)
    _heading(lesson)
    own = measured is not measured_beat.show
    st.session_state[_MEASURED_FOR] = dict(link.current(lesson).values) if own else None
    st.fragment(explore, key="lesson_explore")(lesson, below)
    left, right = st.columns([1, 1], gap="large")
    with left:
        measured(lesson)
    with right:
        st.fragment(exercise_beat.show, key="lesson_exercise")(lesson)
        closing.misconceptions(lesson)
    if beside is not None:
        st.fragment(beside, key="lesson_beside")()
    closing.terms(lesson)
    source.show(sources(lesson), key=lesson.id)
    closing.way_on(lesson)


def _heading(lesson: Lesson) -> None:
    part = next(part for part in course().parts if part.number == lesson.part)
    st.caption(plain(f"{_ROMAN[part.number]} · {part.title} · {lesson.number} {lesson.title}"))
    st.title(plain(lesson.question), anchor=False)


def explore(lesson: Lesson, below: Callable[[LessonCase], None] | None = None) -> None:
    """Everything that follows from the controls and the prediction. The body of a fragment."""
    bar.draw()
    _recall(lesson)
    left, right = st.columns([4, 6], gap="large")
    with left:
        prediction_beat.show(lesson)
        if prediction_beat.is_answered(lesson):
            choice_beat.show(lesson, "because", lesson.because)
    with right:
        _pictures(lesson, below)
    if prediction_beat.is_answered(lesson):
        number_beat.show(lesson, control_row.case(lesson))
    # Last of all, so that every widget of this fragment has been drawn before it starts anew.
    if prediction_beat.just_made() or _measures_another(lesson):
        st.rerun()


def _measures_another(lesson: Lesson) -> bool:
    """Whether the beat of measuring was drawn for other values of the page's controls."""
    drawn_for = st.session_state[_MEASURED_FOR]
    return drawn_for is not None and drawn_for != dict(link.current(lesson).values)


def _recall(lesson: Lesson) -> None:
    if lesson.recall is None:
        return
    page = course().page(lesson.recall.lesson)
    where = "" if page is None else f" from page {page.number}"
    part = print_view.fold(
        f"Recall{where}, if you like", key=f"{lesson.id}_recall_fold", icon=":material/history:"
    )
    if part.open:
        with part.place:
            choice_beat.show(lesson, "recall", lesson.recall.choice)


def _pictures(lesson: Lesson, below: Callable[[LessonCase], None] | None) -> None:
    """The base picture, the controls, and once it was predicted the answer layer with the learner's mark."""
    answered = prediction_beat.is_answered(lesson)
    if said := _without_split(lesson):
        prose.small(said)
    scene = Scene(lesson, control_row.case(lesson), prediction_beat.made(lesson), answered=answered)
    try:
        base = PICTURES[lesson.pictures.base](scene)
        answer = PICTURES[lesson.pictures.answer](scene) if answered else None
    except UserError as gap:
        st.error(plain(str(gap)))
        control_row.show(lesson)
        return
    _picture(lesson, lesson.pictures.base, base, lesson.pictures.look)
    control_row.show(lesson)
    if below is not None:
        below(scene.case)
    if answer is not None:
        _picture(lesson, lesson.pictures.answer, answer, lesson.pictures.answer_look)


def _without_split(lesson: Lesson) -> str:
    """That a page counts one whole chip, where the scenario splits its model and the page has no split."""
    now = record.current()
    if (now.tp, now.pp, now.ep) == (1, 1, 1) or any(control.name in _SPLIT for control in lesson.controls):
        return ""
    return (
        "This page does not follow the split over chips: it counts the whole model on one chip. The planner "
        "shows what a chip of the split holds and does."
    )


def _picture(lesson: Lesson, name: str, drawn: picture.Picture, look: Sequence[str]) -> None:
    # A picture whose look depends on a switch says itself what to look at.
    look_at = " ".join(("Look at:", *([drawn.look_at] if drawn.look_at else look)))
    picture.show(
        replace(drawn, look_at=look_at), key=f"{lesson.id}_{name}", on_pick=control_row.picker(lesson)
    )


def sources(lesson: Lesson) -> list[tuple[str, Callable[..., object]]]:
    """What the page shows, and the function behind each."""
    names = {lesson.pictures.base: "the first picture", lesson.pictures.answer: "the picture of the answer"}
    drawn = [(gives, function) for name, gives in names.items() for function in DRAWN_BY[name]]
    prediction = lesson.prediction.quantity
    quantities = {prediction: "the answer to the prediction"}
    quantities |= {formula.quantity: f"the number {formula.name!r}" for formula in lesson.worked}
    quantities |= {exercise.quantity: "the answer to the exercise" for exercise in lesson.exercises}
    measures = [(f"the line {m.label!r}", MEASURES[m.measure][0]) for m in lesson.measurement.measures]
    named = [(gives, lesson.quantities[name]) for name, gives in quantities.items()]
    return [*drawn, *named, *measures, ("this page", show)]
