"""The headline numbers of a page as tiles; each is a button that opens its arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

import streamlit as st

Tone = Literal["plain", "good", "bad"]

_HTML: Final = '<div class="tiles" role="group"></div>'

_CSS: Final = """
:host { display: block; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.2rem, 1fr)); gap: .5rem; }
button { display: flex; flex-direction: column; min-width: 0; font: inherit; color: inherit; text-align: left;
  cursor: pointer;
  padding: .4rem .6rem .45rem; border-radius: 6px; background: var(--st-secondary-background-color);
  border: 1px solid var(--st-border-color); border-bottom-width: 3px; }
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
button[aria-expanded=true] { border-color: var(--st-primary-color); }
.name { font-size: .8rem; }
.value { font-size: 1.3rem; font-weight: 650; line-height: 1.3; white-space: nowrap; }
.meaning { font-size: .75rem; line-height: 1.25; }
.good { border-bottom-color: #1f9467; }
.bad { border-bottom: 3px double #d4483f; }
@container (max-width: 420px) { .meaning { display: none; } }
@media print { button { border: 1px solid; } }
"""

_JS: Final = """
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".tiles");
  box.setAttribute("aria-label", data.label);
  while (box.children.length > data.tiles.length) box.lastChild.remove();
  data.tiles.forEach((tile, index) => {
    let button = box.children[index];
    if (!button) {
      button = document.createElement("button");
      button.type = "button";
      for (const part of ["name", "value", "meaning"]) {
        button.appendChild(document.createElement("span")).className = part;
      }
      box.appendChild(button);
    }
    button.className = tile.tone;
    button.title = "How this comes about";
    button.setAttribute("aria-expanded", String(tile.name === data.open));
    button.onclick = () => setTriggerValue("chosen", tile.name);
    for (const part of ["name", "value", "meaning"]) {
      const place = button.querySelector("." + part);
      if (place.textContent !== tile[part]) place.textContent = tile[part];
    }
  });
}
"""

_component: Final = st.components.v2.component("number_tiles", html=_HTML, css=_CSS, js=_JS)


@dataclass(frozen=True, slots=True)
class Tile:
    """One number: its short name, the number with its unit, and what it is in a few words."""

    name: str
    value: str
    meaning: str
    tone: Tone = "plain"


def show(
    tiles: Sequence[Tile], label: str, open_name: str, key: str, on_choose: Callable[[str], None]
) -> None:
    """Draw the tiles in a row that wraps.

    Args:
        tiles: the numbers.
        label: what they are, for screen readers.
        open_name: the tile whose arithmetic is shown below; empty for none.
        key: of the component.
        on_choose: called with a tile's name when it is pressed.
    """
    names = {tile.name for tile in tiles}

    def chosen() -> None:
        name = getattr(st.session_state.get(key), "chosen", None)
        if name in names:  # the browser sends it, so it may be anything
            on_choose(str(name))

    _component(
        data={"tiles": [asdict(tile) for tile in tiles], "open": open_name, "label": label},
        key=key,
        on_chosen_change=chosen,
    )
