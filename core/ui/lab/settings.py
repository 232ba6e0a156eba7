"""The visitor's settings: one record in the session, in step with the widgets and with the link."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from core.lab.request import RunRequest
from core.ui.lab import link

_RECORD: Final = "lab_settings"
_LINK: Final = "lab_link_seen"
_NOTES: Final = "lab_link_notes"
#: The record that was loaded from a file and is shown now.
LOADED: Final = "lab_loaded"
_FIELDS: Final = tuple(field.name for field in fields(RunRequest))


def current() -> RunRequest:
    """The settings as they stand; not validated, for a widget's limits hold in the browser only."""
    record: RunRequest = st.session_state.setdefault(_RECORD, RunRequest())
    return record


def notes() -> tuple[str, ...]:
    """What had to be repaired in the link that was opened; empty once a control was changed."""
    return tuple(st.session_state.get(_NOTES, ()))


def widget_key(name: str) -> str:
    """The key of the widget that owns one setting; the widget starts from the record."""
    key = f"lab_{name}"
    if key not in st.session_state:
        st.session_state[key] = getattr(current(), name)
    return key


def adopt_link(models: Collection[str]) -> None:
    """Take settings from the address where it changed: at first, and when the visitor goes back."""
    params = {name: value for name, value in st.query_params.items() if name.startswith(link.PREFIX)}
    if st.session_state.get(_LINK) == params:
        return
    decoded = link.decode(params, models, current().prompt)
    st.session_state[_NOTES] = decoded.notes
    st.session_state[_LINK] = params
    _replace_all(decoded.request)


def changed() -> None:
    """A widget changed: bring the record and the link in step. Meant as ``on_change``."""
    present = {name: st.session_state[f"lab_{name}"] for name in _FIELDS if f"lab_{name}" in st.session_state}
    st.session_state[_NOTES] = ()
    _store(replace(current(), **_typed(present)))
    # A loaded run is not what the controls say any more.
    st.session_state.pop(LOADED, None)


def use(request: RunRequest) -> None:
    """Put all controls to the settings of a request. Meant as a callback."""
    _replace_all(request)
    _store(request)


def address() -> str:
    """The link to this page with these settings, without the prompt."""
    page = urlsplit(str(st.context.url or ""))
    return urlunsplit(
        page._replace(path=page.path or "/", query=urlencode(link.encode(current())), fragment="")
    )


def _replace_all(request: RunRequest) -> None:
    st.session_state[_RECORD] = request
    for name in _FIELDS:
        st.session_state[f"lab_{name}"] = getattr(request, name)


def _store(request: RunRequest) -> None:
    st.session_state[_RECORD] = request
    others = {name: value for name, value in st.query_params.items() if not name.startswith(link.PREFIX)}
    mine = link.encode(request)
    st.session_state[_LINK] = mine
    st.query_params.from_dict({**others, **mine})


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Widgets may return None (a cleared field) or a whole number for a fraction; the record may not."""
    kept = {name: value for name, value in values.items() if value is not None}
    for name in ("temperature", "top_p"):
        if name in kept:
            kept[name] = float(kept[name])
    return kept
