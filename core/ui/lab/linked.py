"""Settings of one part of the lab: a record in the session, in step with its widgets and with the link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

T = TypeVar("T")


class Linked(Generic[T]):
    """Settings whose widgets' keys are ``prefix`` and the field's name; the link's keys begin so too.

    Args:
        prefix: of all keys, also of the session's.
        default: what holds at first.
        encode: gives the link's parameters of a record.
        decode: reads them, with the record of now at hand; gives a record, and sentences on repairs.
        on_change: called after a widget has changed the record.
    """

    def __init__(
        self,
        prefix: str,
        default: T,
        encode: Callable[[T], dict[str, str]],
        decode: Callable[[Mapping[str, str], T], tuple[T, tuple[str, ...]]],
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._prefix, self._default, self._encode = prefix, default, encode
        self._decode, self._on_change = decode, on_change
        self._names = tuple(field.name for field in fields(default))  # type: ignore[arg-type]

    def current(self) -> T:
        """The settings as they stand; not validated, for a widget's limits hold in the browser only."""
        record: T = st.session_state.setdefault(f"{self._prefix}settings", self._default)
        return record

    def notes(self) -> tuple[str, ...]:
        """What had to be repaired in the link that was opened; empty once a control was changed."""
        return tuple(st.session_state.get(f"{self._prefix}link_notes", ()))

    def widget_key(self, name: str) -> str:
        """The key of the widget that owns one setting; the widget starts from the record."""
        key = f"{self._prefix}{name}"
        if key not in st.session_state:
            st.session_state[key] = getattr(self.current(), name)
        return key

    def adopt_link(self) -> None:
        """Take settings from the address where it changed: at first, and when the visitor goes back."""
        params = {name: value for name, value in st.query_params.items() if name.startswith(self._prefix)}
        if st.session_state.get(f"{self._prefix}link_seen") == params:
            return
        record, notes = self._decode(params, self.current())
        st.session_state[f"{self._prefix}link_notes"] = notes
        st.session_state[f"{self._prefix}link_seen"] = params
        self._replace_all(record)

    def changed(self) -> None:
        """A widget changed: bring the record and the link in step. Meant as ``on_change``."""
        keys = {name: f"{self._prefix}{name}" for name in self._names}
        present = {name: st.session_state[key] for name, key in keys.items() if key in st.session_state}
        st.session_state[f"{self._prefix}link_notes"] = ()
        self._store(replace(self.current(), **self._typed(present)))  # type: ignore[type-var]
        self._on_change()

    def use(self, record: T) -> None:
        """Put all controls to the settings of a record. Meant as a callback."""
        self._replace_all(record)
        self._store(record)

    def address(self, **others: str) -> str:
        """The link to this page with these settings; ``others`` are parameters besides them."""
        page = urlsplit(str(st.context.url or ""))
        query = urlencode({**others, **self._encode(self.current())})
        return urlunsplit(page._replace(path=page.path or "/", query=query, fragment=""))

    def _replace_all(self, record: T) -> None:
        st.session_state[f"{self._prefix}settings"] = record
        for name in self._names:
            st.session_state[f"{self._prefix}{name}"] = getattr(record, name)

    def _store(self, record: T) -> None:
        st.session_state[f"{self._prefix}settings"] = record
        others = {name: value for name, value in st.query_params.items() if not name.startswith(self._prefix)}
        mine = self._encode(record)
        st.session_state[f"{self._prefix}link_seen"] = mine
        st.query_params.from_dict({**others, **mine})

    def _typed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Widgets may return None (a cleared field) or a whole number for a fraction; the record may not."""
        kept = {name: value for name, value in values.items() if value is not None}
        fractions = [name for name in kept if isinstance(getattr(self._default, name), float)]
        return {**kept, **{name: float(kept[name]) for name in fractions}}
