"""An exercise: numbers from the link's seed, a stated tolerance, and a reason for each wrong answer."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lesson.answer import LONGEST_ANSWER
from core.lesson.exercise import Instance, draw
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.lesson.notebook_entries import Attempt
from core.ui import print_view
from core.ui.lesson import learner, link
from core.ui.plain import plain

#: After so many wrong answers the solution is offered.
_TRIES_UNTIL_OFFERED: Final = 2


def show(lesson: Lesson) -> None:
    """Draw the lesson's exercises. The body of a fragment."""
    st.header("Check yourself", anchor=False)
    for note in link.notes():
        st.warning(plain(note), icon=":material/link:")
    seed = link.current(lesson).seed
    for exercise in lesson.exercises:
        _one(lesson, drawn(lesson.id, exercise.id, seed))
    if not print_view.is_on():
        st.button(
            "New numbers",
            icon=":material/casino:",
            key=f"{lesson.id}_new_numbers",
            type="tertiary",
            help="Another model, other sizes. The link keeps them, so a room can work on the same ones.",
            on_click=_new_numbers,
            args=(lesson,),
        )


def _new_numbers(lesson: Lesson) -> None:
    """Draw other numbers; the answer to the old ones leaves its field."""
    link.draw_seed(lesson)
    for exercise in lesson.exercises:
        key = f"{lesson.id}_{exercise.id}"
        st.session_state[f"{key}_answer"] = ""
        learner.note_trouble(key, None)


@lru_cache(maxsize=64)
def drawn(lesson_id: str, exercise_id: str, seed: int) -> Instance:
    """An exercise with the numbers of a seed; the same for everyone, so it is kept."""
    lesson = lessons()[lesson_id]
    return draw(lesson, lesson.exercise(exercise_id), seed)


def _one(lesson: Lesson, instance: Instance) -> None:
    st.markdown(plain(instance.question))
    if print_view.is_on():
        st.markdown(f"{plain(instance.tolerance_text)} Solution: {plain(instance.solution)}")
        return
    key = f"{lesson.id}_{instance.exercise.id}"
    with st.form(f"{key}_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            f"Your answer in {plain(instance.exercise.unit)}" if instance.exercise.unit else "Your answer",
            key=f"{key}_answer",
            max_chars=LONGEST_ANSWER,
            help=plain(f"{instance.tolerance_text} A unit may stand behind the number."),
        )
        st.form_submit_button("Check", key=f"{key}_check", on_click=_check, args=(instance, key))
    if sentence := learner.trouble(key):
        st.error(plain(sentence))
    else:
        _verdict(instance, key)


def _check(instance: Instance, key: str) -> None:
    typed = str(st.session_state.get(f"{key}_answer") or "")
    try:
        verdict = instance.check(typed)
        learner.keep(learner.notebook().with_attempt(instance, typed, verdict))
    except UserError as mistake:
        learner.note_trouble(key, mistake)
        return
    learner.note_trouble(key, None)


def _verdict(instance: Instance, key: str) -> None:
    tries = _tries(instance)
    if not tries:
        st.caption(plain(instance.tolerance_text))
        return
    last = tries[-1]
    if last.correct:
        st.success(plain(f"{last.sentence} {instance.solution}"), icon=":material/check_circle:")
        return
    st.warning(plain(f"{last.typed}: {last.sentence}"), icon=":material/lightbulb:")
    if len(tries) >= _TRIES_UNTIL_OFFERED:
        part = print_view.fold("Show the solution", key=f"{key}_solution")
        if part.open:
            with part.place:
                st.markdown(plain(instance.solution))


def _tries(instance: Instance) -> list[Attempt]:
    """The answers to these numbers; those to others are in the notebook only."""
    all_tries = learner.notebook().tries(instance.exercise.lesson, instance.exercise.id)
    return [attempt for attempt in all_tries if attempt.seed == instance.seed]
