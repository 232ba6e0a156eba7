"""How pictures tell requests apart: a letter and a colour for each, and hatching for what is empty."""

from __future__ import annotations

from typing import Final

from core.ui.palette import REQUESTS
from core.ui.svg import Drawing

_LETTERS: Final = 26
_HATCH: Final = 7.0


def letter(request: int) -> str:
    """The name of a request by its place in the trace.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'A2')
    """
    turn, place = divmod(request, _LETTERS)
    return chr(ord("A") + place) + (f"{turn + 1}" if turn else "")


def style(request: int) -> str:
    """The fill of a request; neighbours differ."""
    return f"fill-request-{request % len(REQUESTS)}"


def hatch(drawing: Drawing, x: float, y: float, width: float, height: float) -> None:
    """Diagonal strokes over a rectangle: nothing is done, or nothing lies here."""
    start = x - height + _HATCH
    while start < x + width:
        left, right = max(start, x), min(start + height, x + width)
        if right > left:
            drawing.path(
                [(left, y + height - (left - start)), (right, y + height - (right - start))],
                "thin line-muted",
            )
        start += _HATCH
