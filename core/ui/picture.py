"""Shows a drawing on the page, with its alternative text, and its numbers as a table and files.

The drawing is mounted by a component of a few lines, not as an image file: its colours then follow
the theme at the moment the visitor switches it, its marks answer to the pointer with the exact value,
and its letters grow on a narrow screen. No script of a chart library has to be loaded for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from html import escape
from typing import Final, ParamSpec

import streamlit as st

from core.ui import export, print_view, redraw
from core.ui.palette import stylesheet
from core.ui.redraw import Call
from core.ui.svg import Drawing
from core.ui.table import Rows

P = ParamSpec("P")

#: Heading, drawing and caption are one element: each further one costs the browser a redraw.
_HTML: Final = """
<h2></h2><div class="picture" role="img"></div><p></p>
"""

_CSS: Final = """
:host { display: block; font-family: var(--st-font), sans-serif; color: var(--st-text-color); }
h2 { margin: 0 0 .5rem; font: 600 1.15rem/1.2 var(--st-heading-font), sans-serif;
  color: var(--st-heading-color); }
p { margin: .35rem 0 0; font-size: .875rem; line-height: 1.45; opacity: .86; }
p:empty { display: none; }
.picture { container-type: inline-size; }
svg { display: block; width: 100%; height: auto; font-family: var(--st-font), sans-serif; }
.t { font-size: 13px; }
.strong { font-weight: 650; }
.outline { fill: none; stroke-width: 1.6; stroke-dasharray: 5 3; }
.solid { fill: none; stroke-width: 2.2; }
.thin { fill: none; stroke-width: 1; }
.faint { opacity: .45; }
.band { opacity: .25; }
.clear { fill: transparent; }
[data-pick] { cursor: pointer; }
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
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".picture");
  box.dataset.mode = isDark(box) ? "dark" : "light";
  box.setAttribute("aria-label", data.alt);
  for (const [tag, words] of [["h2", data.title], ["p", data.look]]) {
    const place = parentElement.querySelector(":scope > " + tag) ?? parentElement.querySelector(tag);
    if (place.textContent !== words) place.textContent = words;
  }
  if (box.drawn !== data.svg) {  // not its innerHTML, which a browser writes in its own way
    box.innerHTML = data.svg;
    box.drawn = data.svg;
  }
  box.onclick = (event) => {
    const mark = event.target.closest("[data-pick]");
    if (mark && data.picks) setTriggerValue("picked", mark.dataset.pick);
  };
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
        call: what drew it, for the Python that draws it again; ``redrawable`` sets it.
    """

    title: str
    drawing: Drawing
    alt: str
    columns: tuple[str, ...]
    rows: Rows
    look_at: str = ""
    legend: tuple[Label, ...] = ()
    call: Call | None = None

    def markup(self) -> str:
        """The drawing with its legend."""
        entries = "".join(
            '<li><svg viewBox="0 0 10 10"><rect x="1" y="1" width="8" height="8" '
            f'class="{escape(label.style)}"/></svg>{escape(label.words)} <b>{escape(label.value)}</b></li>'
            for label in self.legend
        )
        return self.drawing.markup() + (f'<ul class="legend">{entries}</ul>' if entries else "")


def redrawable(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """A picture's function that remembers what it was called with."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Picture:
        return replace(draw(*args, **kwargs), call=redraw.call_of(draw, args, kwargs))

    return drawn


def _picked(mounted: str, on_pick: Callable[[str], None]) -> None:
    """Hand on what was clicked; what a browser sends is checked by who gets it."""
    state = st.session_state.get(mounted)
    name = state.get("picked") if state else None
    if isinstance(name, str):
        on_pick(name)


def show(picture: Picture, key: str, on_pick: Callable[[str], None] | None = None) -> None:
    """Draw it in the current container: title, drawing, what to look at, and the closed table.

    Args:
        picture: what is drawn.
        key: of its elements.
        on_pick: called with the name of a mark that was clicked. The keyboard must have another way.
    """
    data = {
        "title": picture.title,
        "svg": picture.markup(),
        "alt": picture.alt,
        "look": picture.look_at,
        "picks": on_pick is not None,
    }
    mounted = f"{key}_picture"
    if on_pick is None:
        _component(data=data, key=mounted)
    else:
        _component(data=data, key=mounted, on_picked_change=partial(_picked, mounted, on_pick))
    numbers = print_view.fold("Numbers of this picture", key=f"{key}_table")
    if numbers.open:
        with numbers.place:
            export.show_table(
                picture.columns,
                picture.rows,
                key=key,
                file_name=key.replace("_", "-"),
                label=f"Numbers: {picture.title}",
                python=None if picture.call is None else partial(redraw.program, picture.call),
            )
