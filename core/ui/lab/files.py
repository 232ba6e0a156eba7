"""Records in and out: save a run, load one, and the list of this visit's runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import streamlit as st

from core.lab.compare import compare
from core.lab.record import RunRecord, dumps, loads
from core.lab.request import RunRequest
from core.ui import export
from core.ui.lab import models, runs, saving, settings, upload
from core.ui.table import Blank, Cell

_MS: Final = 1000.0
_LOAD: Final = "lab_load"
_CACHES: Final = {"contiguous": "with cache", "paged": "with cache in pages", "none": "without cache"}


def when(record: RunRecord) -> str:
    """The time of a run on the visitor's clock, where the browser tells its zone; else UTC."""
    return clock(record.created_at)


def clock(iso_time: str) -> str:
    """An ISO time in UTC on the visitor's clock."""
    moment = datetime.fromisoformat(iso_time)
    offset = st.context.timezone_offset
    if offset is None:
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    return f"{moment - timedelta(minutes=offset):%Y-%m-%d %H:%M}"


def where(record: RunRecord) -> str:
    """The machine of a run in a few words."""
    device = record.host.device_name or record.host.cpu
    return f"{device}, {record.host.threads} threads, torch {record.host.torch_version}"


def what(record: RunRecord) -> str:
    """The settings of a run in a few words."""
    random = " (random weights)" if record.seeded_weights else ""
    return f"{settings_words(record.request)}{random}, {record.output_tokens} written"


def settings_words(request: RunRequest) -> str:
    """A request in a few words.

    >>> settings_words(RunRequest())
    'SmolLM2 135M, int4, with cache, up to 64 tokens'
    """
    cache = _CACHES.get(request.cache, request.cache)
    return f"{models.short(request.model)}, {request.weights}, {cache}, up to {request.max_tokens} tokens"


def save_button(record: RunRecord) -> None:
    """Save a run as one JSON file with everything that is needed to judge it."""
    saving.button(
        "Save this run",
        lambda: dumps(record),
        "run",
        record.created_at,
        key="lab_save",
        help="A JSON file with the settings, the prompt, the answer, the machine, and every step.",
    )


def load_field() -> None:
    """Load a saved run; what is wrong with a file stands right below the field."""
    upload.show("Load a saved run", _LOAD, lambda content: runs.show_loaded(loads(content)))


def loaded_buttons(record: RunRecord) -> None:
    """While a loaded run is shown, the controls wait: leave it, or take its settings over."""
    with st.container(horizontal=True):
        st.button("Close it and predict again", key="lab_close", on_click=close_loaded)
        st.button("Take its settings", key="lab_repeat", on_click=repeat_here, args=(record,))


def close_loaded() -> None:
    """Go back to this visit's own runs. Meant as a callback."""
    runs.show_loaded(None)
    upload.clear(_LOAD)


def repeat_here(record: RunRecord) -> None:
    """Take a loaded run's settings over, to run them here. Meant as a callback."""
    close_loaded()
    settings.use(record.request)


def own_runs() -> None:
    """The runs of this visit, so that formats can be compared."""
    records = runs.records()
    if len(records) < 2:
        return
    st.header("Your runs in this visit", anchor=False)
    columns = ("time", "settings", "predicted TPOT ms", "measured TPOT ms", "measured / predicted", "noisy")
    export.show_table(
        columns,
        [_row(record) for record in reversed(records)],
        key="lab_runs",
        file_name="runs",
        label="Runs of this visit",
    )


def _row(record: RunRecord) -> tuple[Cell, ...]:
    tpot = compare(record).tpot
    noisy = "yes" if record.noisy else "no"
    if tpot is None:
        return (when(record), what(record), *(Blank.DOES_NOT_APPLY,) * 3, noisy)
    return (when(record), what(record), tpot.predicted_s * _MS, tpot.measured_s * _MS, tpot.ratio, noisy)
