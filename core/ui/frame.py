"""What every page shares before it draws anything of its own."""

from __future__ import annotations

from typing import Final

import streamlit as st

#: A slider's number is small text, and the accent colour is too dim for that on the dark page.
_STYLE: Final = '<style>[data-testid="stSliderThumbValue"] { color: inherit; }</style>'

#: A navigation with sections puts other things than items directly into its list, which screen
#: readers then read wrongly. Each section is the list.
_MEND: Final = """
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
export default function () {
  mend();
  if (window.navigationMended) return;
  window.navigationMended = true;
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
}
"""

_component: Final = st.components.v2.component("navigation_mend", js=_MEND)


def dress() -> None:
    """Add the few style rules that a theme cannot express, and mend the navigation for screen readers."""
    st.html(_STYLE)
    with st.sidebar:
        _component(key="navigation_mend")
