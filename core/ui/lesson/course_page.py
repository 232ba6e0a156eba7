"""The course map: five parts, the pages that can be opened, those that are coming, and how far one is."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lesson.course import CoursePage, Part, course
from core.lesson.notebook import LessonProgress
from core.ui.lesson import learner
from core.ui.lesson.closing import link_to
from core.ui.plain import plain

_ROMAN: Final = ("", "I", "II", "III", "IV", "V")


def show() -> None:
    """Draw the map with this visit's progress."""
    progress = course().progress(learner.notebook())
    st.progress(progress.done / max(progress.existing, 1), text=plain(progress.sentence))
    for part in course().parts:
        _part(part, progress.by_page)
    st.header("Tools beside the course", anchor=False)
    for tool in course().tools:
        if tool.exists:
            st.page_link(f"pages/{tool.stem}.py", label=plain(tool.title), help=plain(tool.question))
        else:
            st.caption(plain(f"{tool.title}, coming: {tool.question}"))


def _part(part: Part, by_page: dict[str, LessonProgress]) -> None:
    st.header(plain(f"{_ROMAN[part.number]} · {part.title}"), anchor=False)
    for page in part.pages:
        if page.exists:
            _open_page(page, by_page[page.stem])
    coming = [page for page in part.pages if not page.exists]
    if coming:
        st.caption("Coming: " + plain(" · ".join(f"{page.number} {page.title}" for page in coming)))


def _open_page(page: CoursePage, progress: LessonProgress) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        link_to(page, f"{page.number} {page.title}", _sign(progress))
        st.caption(plain(f"{page.question} {_how_far(progress)}"))


def _sign(progress: LessonProgress) -> str:
    if progress.done:
        return "check_circle"
    return "timelapse" if progress.begun else "radio_button_unchecked"


def _how_far(progress: LessonProgress) -> str:
    if progress.done:
        return "Done."
    if not progress.begun:
        return "Not begun."
    predicted = "predicted" if progress.predicted else "not predicted"
    because = "reason chosen" if progress.explained else "no reason chosen"
    return f"Begun: {predicted}, {because}, {progress.solved} of {progress.exercises} exercises solved."
