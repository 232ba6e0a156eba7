"""Served traces in and out: save one, load one, and leave it again."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab import serve_file
from core.lab.serve_record import ServeRecord
from core.ui import print_view
from core.ui.lab import files, saving, upload
from core.ui.lab.many.settings import LINKED, LOADED, settings_of
from core.ui.state_card import state_card

_LOAD: Final = "lab_many_load"


def loaded() -> ServeRecord | None:
    """The record that was loaded from a file and is shown now."""
    record: ServeRecord | None = st.session_state.get(LOADED)
    return record


def where(record: ServeRecord) -> str:
    """When, what and on which machine, in a sentence."""
    device = record.host.device_name or record.host.cpu
    return (
        f"{files.clock(record.created_at)}, {record.model_name} in {record.request.weights}, "
        f"{record.request.trace.requests} requests, on {device}, {record.host.threads} threads."
    )


def loaded_card(record: ServeRecord) -> None:
    """Say that a file is shown, and how to leave it."""
    state_card("elsewhere", where(record))
    with st.container(horizontal=True):
        st.button("Close it and simulate again", key="serve_close", on_click=_close)
        st.button("Take its settings", key="serve_take", on_click=_take, args=(record,))


def in_and_out(record: ServeRecord | None) -> None:
    """A button that saves what is shown, and a field that loads a file."""
    if record is not None:
        saving.button(
            "Save this record",
            lambda: serve_file.dumps(record),
            "served",
            record.created_at,
            key="serve_save",
            help="A JSON file with the trace, every step with its blocks, every token, and the machine.",
        )
    fold = print_view.fold("Load a saved record", key="serve_load_fold", icon=":material/upload:")
    if fold.open:
        with fold.place:
            upload.show("Load a saved record", _LOAD, _keep, most_mb=serve_file.MOST_MB)


def _keep(content: bytes) -> None:
    st.session_state[LOADED] = serve_file.loads(content)


def _close() -> None:
    st.session_state.pop(LOADED, None)
    upload.clear(_LOAD)


def _take(record: ServeRecord) -> None:
    _close()
    LINKED.use(settings_of(record.request))
