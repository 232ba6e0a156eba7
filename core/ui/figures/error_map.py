"""Where a format loses: signal to noise by layer and operator, the stronger the colour the worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.ui.figures.shades import draw_key, shade
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing
from core.ui.table import Cell

_WIDTH: Final = 560
_LEFT: Final = 6
_RIGHT: Final = 554
_ROW: Final = 52
_BOX: Final = 22
_EVERY: Final = 5

Decibels = Sequence[Sequence[float | None]]


@redrawable
def error_map(title: str, columns: Sequence[str], sqnr_db: Decibels, worst_db: Decibels) -> Picture:
    """Draw a row for each operator and a box for each layer.

    Args:
        title: of what and in which format.
        columns: operators, in the words of a page.
        sqnr_db: [layers][operators]; None where nothing was lost.
        worst_db: the same of the worst channel or token.
    """
    known = [value for row in sqnr_db for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    drawing = Drawing(_WIDTH, _ROW * len(columns) + 62)
    width = (_RIGHT - _LEFT) / len(sqnr_db)
    for column, name in enumerate(columns):
        top = _ROW * column
        drawing.text(_LEFT, top + 16, name, "fill-ink")
        for layer, row in enumerate(sqnr_db):
            value = row[column]
            part = None if value is None else (high - value) / ((high - low) or 1.0)
            box = (_LEFT + width * layer, top + 22.0, width - 1, float(_BOX))
            shade(drawing, box, part, hover=_hover(layer, name, value, worst_db[layer][column]))
    _layers(drawing, len(sqnr_db), width, _ROW * len(columns))
    if known:
        draw_key(drawing, _ROW * len(columns) + 36, f"{high:.0f} dB", f"{low:.0f} dB, most lost")
    return Picture(
        title=title,
        drawing=drawing,
        alt=_alt(columns, sqnr_db),
        columns=("layer", *(f"{name}, dB" for name in columns), *(f"{name}, worst, dB" for name in columns)),
        rows=[(layer, *map(_cell, row), *map(_cell, worst_db[layer])) for layer, row in enumerate(sqnr_db)],
        look_at="The stronger the colour, the more noise. An empty box lost nothing. Hover for the number.",
    )


def _layers(drawing: Drawing, count: int, width: float, top: float) -> None:
    """Numbers of layers below the boxes."""
    for layer in range(0, count, _EVERY):
        drawing.text(_LEFT + width * (layer + 0.5), top + 16, f"{layer}", "fill-muted", anchor="middle")
    drawing.text(_RIGHT, top + 16, "layer", "fill-muted", anchor="end")


def _hover(layer: int, name: str, value: float | None, worst: float | None) -> str:
    if value is None:
        return f"layer {layer}, {name}: nothing lost"
    tail = "" if worst is None else f", worst {worst:.1f} dB"
    return f"layer {layer}, {name}: {value:.1f} dB{tail}"


def _cell(value: float | None) -> Cell:
    return "nothing lost" if value is None else value


def _alt(columns: Sequence[str], sqnr_db: Decibels) -> str:
    said = []
    for column, name in enumerate(columns):
        known = [(value, layer) for layer, row in enumerate(sqnr_db) if (value := row[column]) is not None]
        if known:
            (least, where), (most, _) = min(known), max(known)
            said.append(f"{name} from {least:.0f} dB in layer {where} to {most:.0f} dB")
        else:
            said.append(f"{name} lost nothing")
    return f"Signal to noise over {len(sqnr_db)} layers: {'; '.join(said)}."
