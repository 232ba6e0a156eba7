"""This server's own sweep: what its host published for all visitors, where the visit made none."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.lab import this_server
from core.lab.sweep_record import SweepRecord
from core.ui import prose
from core.ui.lab import files
from core.ui.plain import plain


def draw(results: Callable[[SweepRecord, str], None], key: str) -> bool:
    """Draw the published sweep, or say why it is not shown; false where there is none to draw.

    Args:
        results: draws a record; its second argument is the key of its elements.
        key: of the elements.
    """
    found = this_server.published()
    if found is None:
        return False
    if isinstance(found, str):
        st.warning(plain(found), icon=":material/warning:")
        return False
    when = files.clock(found.created_at)
    prose.paragraph(f"This server, measured quietly on {when}. Its host shows it to all visitors.")
    results(found, key)
    return True
