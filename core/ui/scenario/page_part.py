"""A page's own part of the link: a value of the visit that stands in the address beside the scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st

from core.ui.scenario import address

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PagePart(Generic[Value]):
    """How one page's part of the link is read, kept and written.

    Attributes:
        key: begins the names under which the visit keeps it. names: of its parameters in the address.
        default: what an address without them means.
        read: parameters to a value, with a sentence for each that had to be replaced.
        written: a value to parameters; defaults are left out.
    """

    key: str
    names: frozenset[str]
    default: Value
    read: Callable[[Mapping[str, str]], tuple[Value, tuple[str, ...]]]
    written: Callable[[Value], dict[str, str]]

    def now(self) -> Value:
        """The value as it stands."""
        value: Value = st.session_state.get(self.key, self.default)
        return value

    def notes(self) -> tuple[str, ...]:
        """What had to be repaired in the address; empty once something was changed."""
        return tuple(st.session_state.get(f"{self.key}_notes", ()))

    def adopt(self, *, comes_in: bool) -> None:
        """Bring the value in step with the address, before the page draws anything.

        Args:
            comes_in: the visitor has just come to the page; an address that says nothing then keeps it.
        """
        params = {name: value for name, value in st.query_params.items() if name in self.names}
        if not comes_in and params == st.session_state.get(f"{self.key}_seen"):
            return
        st.session_state[f"{self.key}_seen"] = params
        if comes_in and not params and self.key in st.session_state:
            address.complete(self.written(self.now()))
            return
        st.session_state[self.key], st.session_state[f"{self.key}_notes"] = self.read(params)

    def change(self, value: Value) -> None:
        """Take another value, as a step in the browser's history. Meant for callbacks."""
        st.session_state[self.key], st.session_state[f"{self.key}_notes"] = value, ()
        mine = self.written(value)
        st.session_state[f"{self.key}_seen"] = mine
        address.step(mine, self.names.__contains__)
