"""A question with options, each with its own explanation: the recall before, the "because" after."""

from __future__ import annotations

import streamlit as st

from core.errors import UserError
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Choice
from core.lesson.notebook_entries import Chosen, QuestionKind
from core.ui import print_view
from core.ui.lesson import learner
from core.ui.plain import plain


def show(lesson: Lesson, kind: QuestionKind, choice: Choice) -> None:
    """Ask, and explain what was chosen; another option can be tried, and each try is kept.

    Args:
        lesson: whose question it is.
        kind: which of its questions.
        choice: the question itself.
    """
    if print_view.is_on():
        _printed(lesson, choice)
        return
    key = f"{lesson.id}_{kind}"
    given = learner.notebook().answer(lesson.id, kind)
    # The notebook owns the answer; the widget starts from it at every run.
    st.session_state[key] = None if given is None else given.option
    st.radio(
        plain(choice.question),
        range(len(choice.options)),
        format_func=lambda index: plain(choice.options[index].text),
        key=key,
        on_change=_chosen,
        args=(lesson, kind, choice, key),
    )
    _explain(lesson, choice, given)
    if sentence := learner.trouble(key):
        st.error(plain(sentence))


def _chosen(lesson: Lesson, kind: QuestionKind, choice: Choice, key: str) -> None:
    option = st.session_state.get(key)
    if not isinstance(option, int) or not 0 <= option < len(choice.options):
        return
    try:
        learner.keep(learner.notebook().with_choice(lesson, kind, option))
        learner.note_trouble(key, None)
    except UserError as full:
        learner.note_trouble(key, full)


def _printed(lesson: Lesson, choice: Choice) -> None:
    """The question with every option explained."""
    st.markdown(f"**{plain(choice.question)}**")
    for option in choice.options:
        verdict = "Right." if option.right else "Not this one."
        explanation = plain(lesson.filled(option.explanation))
        st.markdown(f"- {plain(option.text)}  \n  *{verdict}* {explanation}")


def _explain(lesson: Lesson, choice: Choice, given: Chosen | None) -> None:
    if given is None or given.option >= len(choice.options):
        return
    chosen = choice.options[given.option]
    explanation = plain(lesson.filled(chosen.explanation))
    if chosen.right:
        st.success(explanation, icon=":material/check_circle:")
    else:
        st.warning(f"Not this one. {explanation}", icon=":material/lightbulb:")
