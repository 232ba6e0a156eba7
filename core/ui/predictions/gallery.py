"""The recorded runs: every record in a table, one of them open, and what is wrong with other files."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab import gallery as folder
from core.lab.compare import prediction_beside
from core.lab.endpoint.record import EndpointRecord
from core.lab.gallery import Gallery
from core.lab.gallery_entry import Entry
from core.lab.record import RunRecord
from core.lab.sweep_record import SweepRecord
from core.ui import export, prose
from core.ui.lab import comparison
from core.ui.lab import link as lab_link
from core.ui.lab.files import clock
from core.ui.plain import plain
from core.ui.predictions import conditions, link, results, sweeps
from core.ui.scenario import record as scenario

COLUMNS: Final = ("file", "kind", "machine", "when", "model, weights / cache", "what", "noisy")
_CHOICE: Final = "predictions_record_choice"
_TABLE: Final = "predictions_records_table"
#: On a phone the table scrolls in its frame; its words then need not be broken.
_WHOLE_WORDS: Final = (
    f"<style>.st-key-{_TABLE} :is(td, tbody th) {{ overflow-wrap: normal !important }} "
    f".st-key-{_TABLE} :is(td:nth-child(5), td:nth-child(6)) {{ min-width: 7.4rem }} "
    f".st-key-{_TABLE} :is(td:nth-child(3), td:nth-child(4)) {{ min-width: 5.4rem }} "
    f".st-key-{_TABLE} tbody th {{ min-width: 10rem }}</style>"
)


def show() -> None:
    """Draw the section; it is its own fragment, and looks into the folder at every run."""
    st.header("Recorded runs", anchor=False)
    st.fragment(_gallery, key="predictions_records")()


def _gallery() -> None:
    found = folder.gallery(folder.FOLDER)
    prose.paragraph(_sentence(found))
    for refused in found.refused:
        st.warning(f"**{plain(refused.name)}** {plain(refused.why)}", icon=":material/broken_image:")
    if not found.entries:
        return
    sweeps.by_machine(found.entries)
    st.subheader("Every record", anchor=False)
    st.html(_WHOLE_WORDS)
    with st.container(key=_TABLE):
        export.show_table(
            COLUMNS,
            [_row(entry) for entry in found.entries],
            key=_TABLE,
            file_name="recorded-runs",
            label="Recorded runs",
        )
    entry = _chosen(found)
    if entry is not None:
        with st.container(border=True):
            _open(entry)


def _sentence(found: Gallery) -> str:
    machines = len({entry.machine for entry in found.entries})
    said = (
        f"{len(found.entries):,} records of {machines:,} {'machine' if machines == 1 else 'machines'}. Runs "
        "and sweeps hold the prediction that was made before they ran. Every record holds what is needed to "
        "judge it. The README says how to add one of your machine."
    )
    return said if found.entries else "There are no records here yet. The README says how to add one."


def _row(entry: Entry) -> tuple[str, ...]:
    where = entry.machine if entry.device in {"cpu", "server"} else f"{entry.machine}, {entry.device}"
    model = f"{entry.model}, {entry.formats}"
    noisy = "yes" if entry.noisy else "no"
    return entry.name, entry.kind, where, clock(entry.created_at)[:10], model, entry.what, noisy


def _chosen(found: Gallery) -> Entry | None:
    """The record that the visitor opened; a name is only ever looked for among those that are there."""
    entries = {entry.name: entry for entry in found.entries}
    names = {"": "none", **{name: f"{name}, {entry.machine}" for name, entry in entries.items()}}
    asked = link.now().record
    st.session_state[_CHOICE] = asked if asked in names else ""
    st.selectbox(
        "Record to open", list(names), format_func=names.__getitem__, key=_CHOICE, on_change=_choice_changed
    )
    return entries.get(asked)


def _choice_changed() -> None:
    link.show(record=st.session_state.get(_CHOICE))


def _open(entry: Entry) -> None:
    """One record: its result beside its prediction, its conditions, and the file."""
    prose.paragraph(f"{entry.model}, {entry.formats}: {entry.what}.", strong=f"{entry.name}.")
    record = entry.record
    if isinstance(record, RunRecord):
        comparison.headline(prediction_beside(record), record)
        comparison.verdict(record)
        conditions.draw(record.host, conditions.of_run(record), "predictions_record")
    elif isinstance(record, SweepRecord):
        sweeps.draw(record, "predictions_record")
    elif isinstance(record, EndpointRecord):
        results.server(record)
    else:
        results.experiment(entry)
    with st.container(horizontal=True):
        _save(entry)
        _to_the_lab(record)


def _save(entry: Entry) -> None:
    try:
        text = entry.text()
    except UserError as problem:
        st.error(plain(str(problem)))
        return
    st.download_button(
        "Save this record",
        text,
        entry.name.rpartition("/")[2],
        "application/json",
        key="predictions_record_save",
        icon=":material/download:",
        on_click="ignore",
    )


def _to_the_lab(record: object) -> None:
    if isinstance(record, RunRecord):
        st.page_link(
            "pages/lab.py",
            label="Open the lab with these settings",
            icon=":material/science:",
            query_params={**scenario.link_params(), **lab_link.encode(record.request)},
        )
