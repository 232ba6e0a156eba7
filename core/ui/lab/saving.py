"""The button that saves a record of the lab as a file."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def button(label: str, dumps: Callable[[], str], stem: str, created_at: str, *, key: str, help: str) -> None:
    """Draw it; the text is made when it is pressed.

    Args:
        label: on the button.
        dumps: makes the text of the file.
        stem: of the file's name, which the time of the record follows.
        created_at: that time, ISO.
        key: of the button.
        help: what the file holds.
    """
    stamp = created_at[:19].replace(":", "").replace("-", "")
    st.download_button(
        label,
        dumps,
        f"{stem}-{stamp}.json",
        "application/json",
        key=key,
        icon=":material/download:",
        help=help,
        on_click="ignore",
    )
