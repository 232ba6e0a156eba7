"""A list of changes that can be applied: each a button and a sentence, all of them one element.

A row of Streamlit's own is three elements, and each costs the browser a redraw at every change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import streamlit as st

_HTML: Final = "<ul></ul>"

_CSS: Final = """
:host { display: block; font-family: var(--st-font), sans-serif; color: var(--st-text-color); }
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: .5rem; }
li { display: grid; grid-template-columns: max-content 1fr; gap: .75rem; align-items: center;
  line-height: 1.45; }
button { font: inherit; color: inherit; cursor: pointer; padding: .3rem .75rem; min-height: 2.2rem;
  border-radius: 6px; background: var(--st-secondary-background-color);
  border: 1px solid var(--st-border-color); }
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
@media print { button { display: none; } li { grid-template-columns: 1fr; } }
"""

_JS: Final = """
export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector("ul");
  while (list.children.length > data.rows.length) list.lastChild.remove();
  data.rows.forEach((row, index) => {
    let item = list.children[index];
    if (!item) {
      item = document.createElement("li");
      item.appendChild(document.createElement("button")).type = "button";
      const words = item.appendChild(document.createElement("span"));
      words.appendChild(document.createElement("b"));
      words.appendChild(document.createElement("span"));
      list.appendChild(item);
    }
    const [button, words] = item.children;
    button.textContent = data.button;
    button.setAttribute("aria-label", data.button + ": " + row.label);
    button.onclick = () => setTriggerValue("chosen", row.id);
    words.children[0].textContent = row.label + (row.value ? ": " + row.value + "." : ".");
    words.children[1].textContent = " " + row.sentence;
  });
}
"""

_component: Final = st.components.v2.component("choice_list", html=_HTML, css=_CSS, js=_JS)


@dataclass(frozen=True, slots=True)
class Offer:
    """One change: an id that says which, its name, what it brings in a word or two, and a sentence."""

    id: str
    label: str
    value: str
    sentence: str


def show(offers: Sequence[Offer], button: str, key: str, on_choose: Callable[[str], None]) -> None:
    """Draw the list.

    Args:
        offers: the changes.
        button: the word on each button.
        key: of the component.
        on_choose: called with the id of the chosen one.
    """
    ids = {offer.id for offer in offers}

    def chosen() -> None:
        choice = getattr(st.session_state.get(key), "chosen", None)
        if choice in ids:  # the browser sends it, so it may be anything, or an offer of a moment ago
            on_choose(str(choice))

    _component(
        data={"rows": [asdict(offer) for offer in offers], "button": button},
        key=key,
        on_chosen_change=chosen,
    )
