"""What every page shares before it draws anything of its own."""

from __future__ import annotations

from typing import Final

import streamlit as st

#: A slider's number is small text, and the accent colour is too dim for that on the dark page.
_STYLE: Final = '<style>[data-testid="stSliderThumbValue"] { color: inherit; }</style>'


def dress() -> None:
    """Add the few style rules that a theme cannot express."""
    st.html(_STYLE)
