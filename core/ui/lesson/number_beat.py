"""The worked numbers of a lesson, one at a time, with today's values and Python that runs."""

from __future__ import annotations

import streamlit as st

from core.errors import UserError
from core.lesson.amount import LessonCase
from core.lesson.lesson import Lesson
from core.lesson.worked import Worked, work
from core.ui import print_view, worked_number
from core.ui.plain import plain
from core.ui.worked_number import Input, WorkedNumber


def show(lesson: Lesson, case: LessonCase) -> None:
    """Draw the number that was chosen; in print, all of them."""
    st.header("The number", anchor=False)
    for index in range(len(lesson.worked)) if print_view.is_on() else [_chosen(lesson)]:
        formula = lesson.worked[index]
        try:
            done = work(formula, case, lesson.quantities)
        except UserError as gap:
            st.error(plain(str(gap)))
            continue
        with st.container():
            st.markdown(f"**{plain(done.name)}**, {plain(done.about)}")
            worked_number.show(_drawn(done), key=f"{lesson.id}_number_{index}")


def _chosen(lesson: Lesson) -> int:
    names = [formula.name for formula in lesson.worked]
    if len(names) == 1:
        return 0
    name = st.segmented_control(
        "Number to work out",
        names,
        default=names[0],
        required=True,
        format_func=plain,
        key=f"{lesson.id}_number",
        persist_state="session",
    )
    # What the browser sends is checked here; its options are only what it offered.
    return names.index(name) if name in names else 0


def _drawn(done: Worked) -> WorkedNumber:
    return WorkedNumber(
        name=done.name,
        formula=done.formula,
        substituted=done.substituted,
        result=done.result.text,
        inputs=tuple(Input(s.symbol, s.meaning, s.amount.text, s.source) for s in done.symbols),
        python=done.python,
        note=done.note,
    )
