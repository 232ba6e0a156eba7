"""Sweeps in and out: save one, whole or begun, and load one to look at or to go on with."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab import sweep_record
from core.lab.sweep_record import SweepRecord
from core.ui import print_view
from core.ui.lab import files, saving, upload
from core.ui.lab.sweep import settings
from core.units import format_count

_LOADED: Final = "lab_sweep_loaded"
_LOAD: Final = "lab_sweep_load"
_MOST_MB: Final = 4


def loaded() -> SweepRecord | None:
    """The record that was loaded from a file."""
    record: SweepRecord | None = st.session_state.get(_LOADED)
    return record


def close() -> None:
    """What was loaded gives way to what is run here."""
    st.session_state.pop(_LOADED, None)
    upload.clear(_LOAD)


def where(record: SweepRecord) -> str:
    """When, what and on which machine, in a sentence."""
    device = record.host.device_name or record.host.cpu
    done = format_count(len(record.cells), "cell")
    return f"{files.clock(record.created_at)}, {done} on {device}, {record.host.threads} threads."


def in_and_out(record: SweepRecord | None) -> None:
    """A button that saves what is shown, and a field that loads a file."""
    if record is not None and record.cells:
        saving.button(
            "Save this sweep",
            lambda: sweep_record.dumps(record),
            "sweep",
            record.created_at,
            key="sweep_save",
            help="A JSON file with every cell, its prediction, its samples, and the machine.",
        )
    fold = print_view.fold("Load a saved sweep", key="sweep_load_fold", icon=":material/upload:")
    if fold.open:
        with fold.place:
            upload.show("Load a saved sweep", _LOAD, _keep, most_mb=_MOST_MB)


def _keep(content: bytes) -> None:
    record = sweep_record.loads(content)
    st.session_state[_LOADED] = record
    settings.use(record.request)
