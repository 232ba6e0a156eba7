"""Links to other pages that exist; they carry the scenario along."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

from core.lesson.course import course
from core.ui.scenario import record

_PAGES: Final = Path(__file__).parents[2] / "pages"


def to_lesson(stem: str) -> bool:
    """Link to a page of the course; False where it does not exist yet, and then nothing is drawn."""
    page = course().page(stem)
    if page is None or not page.exists or not (_PAGES / f"{stem}.py").exists():
        return False
    st.page_link(
        f"pages/{stem}.py",
        label=f"Learn why: {page.title}",
        icon=":material/school:",
        query_params=record.link_params(),
    )
    return True
