"""What ends a lesson's page: what is often believed, the words that were new, and the way on."""

from __future__ import annotations

import streamlit as st

from core.lesson.course import CoursePage, course
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Misconception
from core.ui import print_view, table
from core.ui.lesson import learner
from core.ui.plain import plain


def misconceptions(lesson: Lesson) -> None:
    """The cards: the claim is seen; why it fails is opened."""
    st.header("Often believed", anchor=False)
    for index, card in enumerate(lesson.misconceptions):
        st.markdown(f"**“{plain(card.claim)}”**")
        part = print_view.fold("Why it is tempting, and what holds", key=f"{lesson.id}_misconception_{index}")
        if part.open:
            with part.place:
                _card(lesson, card)


def _card(lesson: Lesson, card: Misconception) -> None:
    entries = (
        ("Why it is tempting", card.tempting),
        ("What speaks against it", card.evidence),
        ("What holds", card.rule),
        ("Source", card.source),
    )
    for label, text in entries:
        st.markdown(f"**{label}.** {plain(lesson.filled(text, card.case))}")


def terms(lesson: Lesson) -> None:
    """The words that this page explains."""
    part = print_view.fold("Words on this page", key=f"{lesson.id}_terms", icon=":material/menu_book:")
    if part.open:
        with part.place:
            words = [(term.term, term.meaning) for term in lesson.terms]
            table.show(("word", "meaning"), words, "Words on this page")


def way_on(lesson: Lesson) -> None:
    """The pages before and after, and what the notebook holds."""
    st.divider()
    kept()
    around = course().neighbours(lesson.id)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        if around.previous is not None:
            link_to(
                around.previous, f"Before: {around.previous.number} {around.previous.title}", "arrow_back"
            )
        else:
            st.page_link("pages/course.py", label="Course map", icon=":material/map:")
        if around.next is not None:
            link_to(around.next, f"Next: {around.next.number} {around.next.title}", "arrow_forward")
        else:
            st.page_link("pages/course.py", label="Course map: more is coming", icon=":material/map:")


def link_to(page: CoursePage, label: str, icon: str) -> None:
    """A link to a lesson's page."""
    st.page_link(
        f"pages/{page.stem}.py", label=plain(label), icon=f":material/{icon}:", help=plain(page.question)
    )


def kept() -> None:
    """A link to the notebook, with what it holds; nothing while it is empty."""
    mine = learner.notebook()
    if mine.empty:
        return
    saved = "saved" if learner.is_saved() else "not saved to a file yet: a reload of the browser loses it"
    entries = "1 entry" if mine.size == 1 else f"{mine.size} entries"
    st.page_link("pages/notebook.py", label=f"Your notebook: {entries}, {saved}", icon=":material/edit_note:")
