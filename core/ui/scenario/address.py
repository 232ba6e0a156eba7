"""The address in the browser: who writes which of its parameters, and what comes of it in the history.

A change that a visitor makes is a step that Back undoes. What a page adds by itself when a visitor
comes to it is none: it only completes the address that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

import streamlit as st

_MISSING: Final = "address_missing"
_TURN: Final = "address_turn"

_JS: Final = """
export default function ({ data }) {
  if (window.completedAddress === data.turn) return;
  window.completedAddress = data.turn;
  history.replaceState(history.state, "", location.pathname + "?" + data.query);
}
"""

_component: Final = st.components.v2.component("address", js=_JS)

#: Whether a parameter belongs to the one who asks.
Owns = Callable[[str], bool]


def step(params: Mapping[str, str], owns: Owns) -> None:
    """Replace one owner's parameters, as a step in the browser's history. Meant for callbacks."""
    others = {name: value for name, value in st.query_params.items() if not owns(name)}
    st.query_params.from_dict({**others, **params})


def complete(params: Mapping[str, str]) -> None:
    """Add parameters to the address that the visitor came to; Back does not stop there twice."""
    st.session_state[_MISSING] = {**st.session_state.get(_MISSING, {}), **params}


def draw() -> None:
    """Hand the browser what is missing in its address; the app's frame calls it after every page."""
    missing: dict[str, str] = st.session_state.pop(_MISSING, {})
    if not missing:
        return
    turn = int(st.session_state.get(_TURN, 0)) + 1
    st.session_state[_TURN] = turn
    query = urlencode({**dict(st.query_params.items()), **missing})
    with st.sidebar:
        _component(data={"query": query, "turn": turn}, key="address")
