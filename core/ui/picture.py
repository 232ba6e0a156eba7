"""Shows a drawing on the page, with its alternative text, and its numbers as a table and files.

The drawing is mounted by a component of a few lines, not as an image file: its colours then follow
the theme at the moment the visitor switches it, its marks answer to the pointer with the exact value,
and its letters grow on a narrow screen. No script of a chart library has to be loaded for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from core.ui import export, print_view
from core.ui.palette import stylesheet
from core.ui.svg import Drawing

_HTML: Final = """
<div class="picture" role="img"></div>
"""

_CSS: Final = """
:host { display: block; }
.picture { container-type: inline-size; }
svg { display: block; width: 100%; height: auto; font-family: var(--st-font), sans-serif; }
.t { font-size: 13px; }
.strong { font-weight: 650; }
.outline { fill: none; stroke-width: 1.6; stroke-dasharray: 5 3; }
.solid { fill: none; stroke-width: 2.2; }
.thin { fill: none; stroke-width: 1; }
.faint { opacity: .45; }
.band { opacity: .25; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1.1rem;
  margin: .35rem 0 0; padding: 0;
  font: .85rem var(--st-font), sans-serif; color: var(--st-text-color); }
.legend svg { display: inline-block; width: .8em; height: .8em; margin-right: .4em; vertical-align: -.05em; }
.legend b { font-weight: 650; }
svg.flat * { vector-effect: non-scaling-stroke; }
@container (max-width: 520px) { .t { font-size: 15px; } }
@container (max-width: 430px) { .t { font-size: 19px; } }
@media print { .t { font-size: 13px; } }
"""

_JS: Final = """
function isDark(element) {
  const colour = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  const parts = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(colour);
  return Boolean(parts) && parts.slice(1).reduce((sum, part) => sum + parseInt(part, 16), 0) < 384;
}
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".picture");
  box.dataset.mode = isDark(box) ? "dark" : "light";
  box.setAttribute("aria-label", data.alt);
  if (box.innerHTML !== data.svg) box.innerHTML = data.svg;
}
"""


_component: Final = st.components.v2.component("lab_picture", html=_HTML, css=_CSS + stylesheet(), js=_JS)


@dataclass(frozen=True, slots=True)
class Label:
    """One entry of a legend: the style of its mark, its words, and its value, which stands out."""

    style: str
    words: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing and everything that must stand beside it.

    Attributes:
        title: what it shows, as a short heading.
        drawing: the marks. alt: its takeaway in one sentence, for those who do not see it.
        columns, rows: the same numbers as a table, with units in the column names.
        look_at: one line that says what to look for.
        legend: entries below the drawing, where there is no room for words in it.
    """

    title: str
    drawing: Drawing
    alt: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | float | int | None]]
    look_at: str = ""
    legend: tuple[Label, ...] = ()

    def markup(self) -> str:
        """The drawing with its legend."""
        entries = "".join(
            '<li><svg viewBox="0 0 10 10"><rect x="1" y="1" width="8" height="8" '
            f'class="{escape(label.style)}"/></svg>{escape(label.words)} <b>{escape(label.value)}</b></li>'
            for label in self.legend
        )
        return self.drawing.markup() + (f'<ul class="legend">{entries}</ul>' if entries else "")


def show(picture: Picture, key: str) -> None:
    """Draw it in the current container: title, drawing, what to look at, and the closed table."""
    st.header(picture.title, anchor=False)
    _component(data={"svg": picture.markup(), "alt": picture.alt}, key=f"{key}_picture")
    if picture.look_at:
        st.caption(picture.look_at)
    table = print_view.fold("Numbers of this picture", key=f"{key}_table")
    if table.open:
        with table.place:
            export.show_table(picture.columns, picture.rows, key=key, file_name=key.replace("_", "-"))
