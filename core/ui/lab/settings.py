"""The settings of one answer: one record in the session, in step with the widgets and with the link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import streamlit as st

from core.lab.request import RunRequest
from core.ui.lab import link, models
from core.ui.lab.linked import Linked

#: The record that was loaded from a file and is shown now.
LOADED: Final = "lab_loaded"


def _decode(params: Mapping[str, str], now: RunRequest) -> tuple[RunRequest, tuple[str, ...]]:
    decoded = link.decode(params, models.known_ids(), now.prompt)
    return decoded.request, decoded.notes


def _close_loaded() -> None:
    """A loaded run is not what the controls say any more."""
    st.session_state.pop(LOADED, None)


_LINKED: Final = Linked(link.PREFIX, RunRequest(), link.encode, _decode, _close_loaded)
current = _LINKED.current
notes = _LINKED.notes
widget_key = _LINKED.widget_key
adopt_link = _LINKED.adopt_link
changed = _LINKED.changed
use = _LINKED.use
address = _LINKED.address
