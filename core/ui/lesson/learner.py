"""The learner's notebook in this visit: what was done, and whether it has been saved to a file."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.errors import UserError
from core.lesson.notebook import Notebook

_NOTEBOOK: Final = "notebook"
_SAVED: Final = "notebook_saved"
_TROUBLE: Final = "notebook_trouble"


def notebook() -> Notebook:
    """Everything that was done in this visit, or was loaded into it."""
    mine: Notebook = st.session_state.setdefault(_NOTEBOOK, Notebook())
    return mine


def keep(changed: Notebook) -> None:
    """Put a changed notebook in the place of the old one."""
    st.session_state[_NOTEBOOK] = changed


def is_saved() -> bool:
    """Whether a file holds everything: nothing was done, or nothing since the last save or load."""
    saved: Notebook = st.session_state.get(_SAVED, Notebook())
    return notebook() == saved


def mark_saved() -> None:
    """The notebook as it stands went into a file. Meant as a callback."""
    st.session_state[_SAVED] = notebook()


def open_saved(loaded: Notebook) -> None:
    """Go on with a notebook that came from a file. Meant as a callback."""
    keep(loaded)
    mark_saved()


def trouble(key: str) -> str:
    """What was wrong with the last input at ``key``, as a sentence; empty where nothing was."""
    return str(st.session_state.get(_TROUBLE, {}).get(key, ""))


def note_trouble(key: str, fault: UserError | None) -> None:
    """Remember what was wrong with an input, or that nothing was."""
    known: dict[str, str] = dict(st.session_state.get(_TROUBLE, {}))
    known.pop(key, None)
    if fault is not None:
        known[key] = str(fault)
    st.session_state[_TROUBLE] = known
