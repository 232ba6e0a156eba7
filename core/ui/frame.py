"""What every page shares before it draws anything of its own."""

from __future__ import annotations

from typing import Final

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

#: A slider's number and a chosen segment are small text, and the accent colour is too dim for that on
#: the dark page.
_STYLE: Final = """
[data-testid="stSliderThumbValue"],
[data-testid="stButtonGroup"] button[data-selected="true"] { color: inherit !important; }
"""

#: The rules go into the document's head, where no rerun removes them for a moment.
#: A navigation with sections puts other things than items directly into its list, which screen
#: readers then read wrongly; each section is made the list.
_DRESS: Final = """
const mend = () => {
  for (const list of document.querySelectorAll("ul[data-testid=stSidebarNavItems]")) {
    const sections = [...list.children].filter((child) => child.tagName !== "LI");
    if (!sections.length) continue;
    if (!list.hasAttribute("role")) list.setAttribute("role", "presentation");
    for (const section of sections) {
      if (!section.hasAttribute("role")) section.setAttribute("role", "list");
    }
  }
};
export default function ({ data }) {
  mend();
  if (document.getElementById("frame-style")) return;
  const style = document.createElement("style");
  style.id = "frame-style";
  style.textContent = data.style;
  document.head.appendChild(style);
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
}
"""

_component: Final = st.components.v2.component("frame", js=_DRESS)


def dress() -> None:
    """Add the few style rules that a theme cannot express, and mend the navigation for screen readers."""
    with st.sidebar:
        _component(data={"style": _STYLE}, key="frame")


def require() -> None:
    """Start again inside the app's frame where a page was opened without it; a page's first act.

    Until ``app.py`` has run once, a fresh server takes the folder ``pages`` for its own navigation, and
    an address like ``/lab`` opens that page bare.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
