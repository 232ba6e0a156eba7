"""What is swept: kept in the visit, so that it survives another part of the lab and another page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.lab.sweep_request import SweepRequest

_SETTINGS: Final = "lab_sweep_settings"
_WIDGET: Final = "lab_sweep_"
#: A first sweep takes a minute or two and tells the formats apart.
FIRST: Final = SweepRequest(
    weights=("bf16", "int8", "int4"),
    batches=(1, 4),
    prompts=(32, 128),
    new_tokens=16,
)


def current() -> SweepRequest:
    """The sweep as it is set."""
    request: SweepRequest = st.session_state.setdefault(_SETTINGS, FIRST)
    return request


def use(request: SweepRequest) -> None:
    """Set everything as another sweep had it."""
    st.session_state[_SETTINGS] = request
    for name in request.to_json():
        st.session_state.pop(_WIDGET + name, None)


def run_on(device: str) -> None:
    """Take another device and keep the rest."""
    change: dict[str, Any] = {"device": device}
    st.session_state[_SETTINGS] = replace(current(), **change)


def widget_key(name: str) -> str:
    """The key of a setting's widget, which begins at what is set."""
    key = _WIDGET + name
    if key not in st.session_state:
        value: Any = getattr(current(), name)
        st.session_state[key] = list(value) if isinstance(value, tuple) else value
    return key


def changed(name: str) -> None:
    """Take a widget's value over. Meant for callbacks."""
    value: Any = st.session_state[_WIDGET + name]
    change: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value}
    st.session_state[_SETTINGS] = replace(current(), **change)
