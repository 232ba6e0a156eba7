"""Plain sentences as HTML: cheaper to draw than Markdown, which a browser parses anew at every change.

For what changes with a control. Texts are escaped here; nothing in them is markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

import streamlit as st

_LINE: Final = "margin:0;line-height:1.5;overflow-wrap:anywhere"
_SMALL: Final = f"{_LINE};font-size:.875rem;opacity:.86"
_LIST: Final = "margin:0;padding-left:1.2rem;line-height:1.5;overflow-wrap:anywhere"


def paragraph(text: str, *, strong: str = "") -> None:
    """One paragraph; ``strong`` are words before it that stand out."""
    first = f"<strong>{escape(strong)}</strong> " if strong else ""
    st.html(f'<p style="{_LINE}">{first}{escape(text)}</p>')


def small(text: str) -> None:
    """A paragraph of small text: what a number rests on, how something was measured."""
    st.html(f'<p style="{_SMALL}">{escape(text)}</p>')


def bullets(sentences: Sequence[str]) -> None:
    """A list of sentences; nothing where there are none."""
    if sentences:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
        st.html(f'<ul style="{_LIST}">{items}</ul>')
