"""The prediction: a mark on a log scale or a choice, with confidence, committed once, or skipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lesson.amount import Amount
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import CONFIDENCES, PredictionQuestion
from core.lesson.prediction import Prediction, predict_choice, predict_number, skip_prediction
from core.ui import print_view
from core.ui.lesson import learner
from core.ui.plain import plain

#: Marks in each decade of the scale, evenly spaced as factors.
_IN_A_DECADE: Final = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_JUST_MADE: Final = "lesson_prediction_just_made"


def made(lesson: Lesson) -> Prediction | None:
    """What was predicted in this lesson, or that it was skipped."""
    return learner.notebook().prediction(lesson.id)


def is_answered(lesson: Lesson) -> bool:
    """Whether the answer layer may be seen: after the prediction or "show me", and always in print."""
    return made(lesson) is not None or print_view.is_on()


def just_made() -> bool:
    """Whether a prediction was committed in this very run; true once."""
    return bool(st.session_state.pop(_JUST_MADE, False))


def show(lesson: Lesson) -> None:
    """Ask for the prediction, or tell what it came to."""
    st.header("Your prediction", anchor=False)
    st.markdown(plain(lesson.filled(lesson.prediction.question)))
    mine = made(lesson)
    if mine is None:
        _ask(lesson)
    if is_answered(lesson):
        _reveal(lesson, mine)


def _ask(lesson: Lesson) -> None:
    key = f"{lesson.id}_guess"
    asked = lesson.prediction
    if asked.kind == "number":
        options = scale(asked)
        st.select_slider(
            "Your mark",
            options,
            value=options[len(options) // 2],
            format_func=lambda value: Amount(value, asked.unit).text,
            key=key,
            help="Each step is a factor: the scale is logarithmic. Arrow keys move it too.",
            on_change=_moved,
            args=(key,),
        )
    else:
        texts = {option.id: plain(option.text) for option in asked.options}
        st.radio("Your choice", list(texts), index=None, format_func=texts.__getitem__, key=key)
    sure = st.segmented_control("How sure are you?", CONFIDENCES, key=f"{key}_confidence")
    complete = sure is not None and _is_set(lesson, key)
    _buttons(lesson, key, complete=complete)
    if sentence := learner.trouble(key):
        st.error(plain(sentence))


def _buttons(lesson: Lesson, key: str, *, complete: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Commit",
            type="primary",
            icon=":material/lock:",
            key=f"{key}_commit",
            disabled=not complete,
            help="Once committed, it stays, and your mark is kept in the picture.",
            on_click=_commit,
            args=(lesson, key),
        )
        st.button(
            "Show me",
            type="tertiary",
            key=f"{key}_skip",
            help="Shows the answer without a prediction. Your notebook says that it was skipped.",
            on_click=_keep,
            args=(key, lambda: skip_prediction(lesson)),
        )
    if not complete:
        what = "Move the mark" if lesson.prediction.kind == "number" else "Choose"
        st.caption(
            f"{what}, say how sure you are, then commit. It is no test: a wrong guess helps you learn."
        )


def _moved(key: str) -> None:
    st.session_state[f"{key}_moved"] = True


def _is_set(lesson: Lesson, key: str) -> bool:
    """Whether something was said: where the mark stands at first is nobody's guess."""
    if lesson.prediction.kind == "number":
        return bool(st.session_state.get(f"{key}_moved", False))
    return st.session_state.get(key) is not None


def scale(asked: PredictionQuestion) -> list[float]:
    """The marks of a log scale, its ends included.

    >>> from core.lesson.lesson_file import lessons
    >>> scale(lessons()["prefill_and_decode"].prediction)[:4]
    [1.0, 1.2, 1.5, 2.0]
    """
    decades = range(math.floor(math.log10(asked.low)), math.ceil(math.log10(asked.high)) + 1)
    marks = {float(f"{step * 10.0**decade:.6g}") for decade in decades for step in _IN_A_DECADE}
    inside = {mark for mark in marks if asked.low <= mark <= asked.high}
    return sorted(inside | {float(asked.low), float(asked.high)})


def _commit(lesson: Lesson, key: str) -> None:
    guess, sure = st.session_state.get(key), str(st.session_state.get(f"{key}_confidence"))
    if lesson.prediction.kind == "number":
        _keep(key, lambda: predict_number(lesson, float(guess or 0), sure))
    else:
        _keep(key, lambda: predict_choice(lesson, str(guess), sure))


def _keep(key: str, make: Callable[[], Prediction]) -> None:
    try:
        learner.keep(learner.notebook().with_prediction(make()))
    except UserError as fault:  # a browser can send what its widget does not offer
        learner.note_trouble(key, fault)
        return
    learner.note_trouble(key, None)
    st.session_state[_JUST_MADE] = True


def _reveal(lesson: Lesson, mine: Prediction | None) -> None:
    if mine is not None:
        st.markdown(f"**{plain(_said(lesson, mine))}**")
        if mine.surprising:
            st.caption("You were certain, and it is otherwise. Such surprises are remembered best.")
    st.markdown(plain(lesson.filled(lesson.prediction.reveal)))
    st.info(plain(lesson.filled(lesson.answer)), icon=":material/key:")


def _said(lesson: Lesson, mine: Prediction) -> str:
    """What was said, how sure, and how close it came."""
    option = next((o.text for o in lesson.prediction.options if o.id == mine.choice), "")
    said = f"You said: {option}, {mine.confidence}. " if option else ""
    sure = f" You were {_sure(mine.confidence)}." if mine.kind == "number" else ""
    return f"{said}{mine.sentence}{sure}"


def _sure(confidence: str) -> str:
    return "guessing" if confidence == CONFIDENCES[0] else confidence
