"""The print view: one switch that unfolds everything, for paper and for reading at one go.

What is folded on a screen is missing on paper. A page therefore folds with ``fold``, never with an
expander or a popover of its own: in the print view the same call gives an open section with a title.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

_SWITCH: Final = "print_view"


@dataclass(frozen=True, slots=True)
class Fold:
    """A part that can be folded: where its content goes, and whether there must be any now."""

    place: DeltaGenerator
    open: bool


def switch() -> None:
    """Draw the switch; once for the app, outside every fragment, so that all of a page follows it."""
    st.toggle(
        "Print view",
        key=_SWITCH,
        help="Unfolds every part of a page, so that nothing is missing on paper.",
        persist_state="session",
    )


def is_on() -> bool:
    """Whether everything is to be unfolded."""
    return bool(st.session_state.get(_SWITCH, False))


def fold(label: str, key: str, *, icon: str | None = None) -> Fold:
    """A closed expander whose content is only made when it is open; an open section in the print view.

    >>> part = fold("Numbers of this picture", key="numbers")     # doctest: +SKIP
    >>> if part.open:                                             # doctest: +SKIP
    ...     with part.place:
    ...         st.write("...")
    """
    if is_on():
        return Fold(_section(label), open=True)
    expander = st.expander(label, key=key, icon=icon, type="compact", on_change="rerun")
    return Fold(expander, open=bool(expander.open))


def pop(label: str, key: str, *, icon: str | None = None) -> Fold:
    """The same as a button with a panel, for what changes settings; print shows nothing of it."""
    if is_on():
        return Fold(st.container(), open=False)
    panel = st.popover(label, key=key, icon=icon, on_change="rerun")
    return Fold(panel, open=bool(panel.open))


def _section(label: str) -> DeltaGenerator:
    section = st.container(border=True)
    section.markdown(f"**{label}**")
    return section
