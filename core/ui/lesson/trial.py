"""What the measured beats of pages with an experiment share: a choice beside it, and what must hold after."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Control
from core.lesson.measures import Checked
from core.ui.lesson import link
from core.ui.plain import plain


def choice(lesson: Lesson, control: Control) -> None:
    """Draw a setting of the experiment; the page's link holds it."""
    key = f"{lesson.id}_{control.name}"
    # The link owns the value; the widget starts from it at every run.
    st.session_state[key] = link.current(lesson).values[control.name]
    st.selectbox(
        plain(control.label),
        control.options,
        key=key,
        help=plain(control.help),
        on_change=_changed,
        args=(lesson, control.name, key),
    )


def _changed(lesson: Lesson, name: str, key: str) -> None:
    link.change(lesson, name, st.session_state[key])


def noise(reasons: Sequence[str]) -> str:
    """Why the times of a result do not count though its counts do; empty on a quiet host."""
    return f"Its times are not to be trusted, its counts are: {', '.join(reasons)}." if reasons else ""


def check(label: str, checked: Checked) -> None:
    """Say whether something holds, with a sign and a sentence."""
    sign = ":material/check_circle:" if checked.holds else ":material/error:"
    st.markdown(f"{sign} **{plain(label)}**: {plain(checked.sentence)}")
