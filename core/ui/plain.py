"""Text from elsewhere (a file, a worker) shown as it is, where Streamlit would read Markdown."""

from __future__ import annotations

from typing import Final

_MARKS: Final = frozenset("\\`*_{}[]<>()#+!|~$:&")


def plain(text: str) -> str:
    r"""Escape everything that Markdown gives a meaning to.

    >>> plain("![x](http://example.com)")
    '\\!\\[x\\]\\(http\\://example.com\\)'
    """
    return "".join(f"\\{letter}" if letter in _MARKS else letter for letter in text)
