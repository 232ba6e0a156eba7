"""Five shades of one colour, from little to much; each mark also says its value under the pointer."""

from __future__ import annotations

from typing import Final

from core.ui.svg import Drawing

#: Each shade is a few translucent layers: what lies behind it, light or dark, needs no colour of its own.
_LAYERS: Final = (("band",), ("faint",), ("faint", "faint"), ("faint", "faint", "faint"), ("",))
COUNT: Final = len(_LAYERS)
_COLOUR: Final = "fill-decode"
_KEY: Final = 13


def shade(
    drawing: Drawing, box: tuple[float, float, float, float], part: float | None, *, hover: str
) -> None:
    """Fill a box (x, y, width, height) by a part from 0 to 1; None is an empty frame."""
    x, y, width, height = box
    if part is None:
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        drawing.path(corners, "thin line-grid clear", hover=hover)
        return
    layers = _LAYERS[min(int(min(max(part, 0.0), 1.0) * COUNT), COUNT - 1)]
    for index, layer in enumerate(layers):
        last = index == len(layers) - 1  # the topmost one has the words
        drawing.rectangle(x, y, width, height, f"{layer} {_COLOUR}".strip(), hover=hover if last else "")


def draw_key(drawing: Drawing, top: float, least: str, most: str) -> None:
    """The shades in order between the words for their ends."""
    drawing.text(6, top + 12, least, "fill-muted")
    left = drawing.width / 2 - COUNT * (_KEY + 2) / 2
    for index in range(COUNT):
        box = (left + index * (_KEY + 2), top + 1, float(_KEY), float(_KEY))
        shade(drawing, box, (index + 0.5) / COUNT, hover=f"shade {index + 1} of {COUNT}")
    drawing.text(drawing.width - 6, top + 12, most, "fill-muted", anchor="end")
