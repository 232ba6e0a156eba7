"""A key for one browser tab: it survives a reload, and no other tab or visitor has it."""

from __future__ import annotations

import re
from typing import Final

import streamlit as st

_JS: Final = """
export default function ({ setStateValue, data }) {
  const name = "llm-inference-lab-visit";
  let key = sessionStorage.getItem(name);
  if (!key) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    sessionStorage.setItem(name, key);
  }
  if (data.known !== key) setStateValue("key", key);
}
"""
_FORM: Final = re.compile(r"[0-9a-f]{32}")
_KNOWN: Final = "visit_key_known"

_component: Final = st.components.v2.component("visit_key", js=_JS)


def ask() -> str | None:
    """Mount the question in the current fragment, so that the answer redraws nothing else.

    Returns:
        The key of this tab; None until the browser has answered, or where scripts are off.
    """
    result: object = _component(key="visit_key", data={"known": known_key()}, on_key_change=_nothing)
    key = getattr(result, "key", None)
    if isinstance(key, str) and _FORM.fullmatch(key):
        st.session_state[_KNOWN] = key
    return known_key()


def known_key() -> str | None:
    """The key of this tab where the browser has told it."""
    key: str | None = st.session_state.get(_KNOWN)
    return key


def _nothing() -> None:
    """The component needs a callback to have a state; the fragment's rerun is what matters."""
