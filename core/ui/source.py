"""The code behind a page, shown on the page: each picture's and each number's own function.

A reader who wonders where a picture comes from finds its file, its line and its text here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from core.ui import print_view, table

#: The project's folder.
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Source:
    """One function or class: what it gives on the page, where it stands, and its text."""

    gives: str
    name: str
    path: str
    line: int
    text: str


def source_of(gives: str, thing: Callable[..., Any]) -> Source:
    """Find the text of a function or class of this project.

    Args:
        gives: what a visitor sees of it ("the memory bar").
        thing: the function or class itself; a cached one is unwrapped.

    >>> source_of("this", source_of).path
    'core/ui/source.py'
    """
    bare = inspect.unwrap(thing)
    lines, line = inspect.getsourcelines(bare)
    path = Path(inspect.getsourcefile(bare) or "").resolve().relative_to(ROOT)
    return Source(gives, bare.__qualname__, path.as_posix(), line, "".join(lines))


def show(things: Sequence[tuple[str, Callable[..., Any]]], key: str) -> None:
    """Name the functions behind a page, and show the one that is chosen (all of them in print).

    Args:
        things: what each gives on the page, and the function; the file's name is seen at once.
        key: the page's.
    """
    part = print_view.fold("The code behind this page", key=f"{key}_source", icon=":material/code:")
    if not part.open:
        return
    sources = [source_of(gives, thing) for gives, thing in things]
    with part.place:
        table.show(
            ("what you see", "function", "file"),
            [(s.gives, s.name, f"{s.path}:{s.line}") for s in sources],
            "Functions behind this page",
        )
        for source in sources if print_view.is_on() else [_chosen(sources, key)]:
            st.caption(f"`{source.path}`, line {source.line}")
            st.code(source.text, language=None, wrap_lines=True)


def _chosen(sources: Sequence[Source], key: str) -> Source:
    names = {f"{source.name} ({source.gives})": source for source in sources}
    name = st.selectbox("Show the text of", list(names), key=f"{key}_source_name")
    return names.get(str(name), sources[0])
