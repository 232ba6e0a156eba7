"""A field that takes one saved file; what is wrong with it stands right below."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.errors import UserError


def show(label: str, key: str, take: Callable[[bytes], None], most_mb: int = 1) -> None:
    """Draw the field, and hand a new file on once.

    Args:
        label: what to load.
        key: of the field, and of what is remembered about it.
        take: gets the content; a ``UserError`` that it raises is shown as its sentence.
        most_mb: megabytes of a file at most.
    """
    turn = st.session_state.setdefault(f"{key}_turn", 0)
    file = st.file_uploader(
        label,
        type="json",
        key=f"{key}_{turn}",
        max_upload_size=most_mb,
        help=f"A file that this page saved, here or on another computer; up to {most_mb} MB.",
    )
    if file is None or st.session_state.get(f"{key}_seen") == file.file_id:
        _trouble(key)
        return
    st.session_state[f"{key}_seen"] = file.file_id
    try:
        take(file.getvalue())
    except UserError as fault:
        st.session_state[f"{key}_trouble"] = str(fault)
        _trouble(key)
        return
    st.session_state.pop(f"{key}_trouble", None)
    st.rerun()


def clear(key: str) -> None:
    """Empty the field. Meant for callbacks."""
    st.session_state[f"{key}_turn"] = st.session_state.get(f"{key}_turn", 0) + 1


def _trouble(key: str) -> None:
    if sentence := st.session_state.get(f"{key}_trouble"):
        st.error(sentence)
