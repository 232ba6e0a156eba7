"""The palette: one meaning a colour, in light and dark, the same on every page.

A colour never stands alone: predicted is an outline or a dashed line, measured is filled, and
every mark has a word beside it. Within a group (what fills memory, what a step does) any two
colours stay apart under protanopia, deuteranopia and tritanopia, and every colour has a contrast
of at least 3 to 1 with the page; the tests measure both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Mode = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Colour:
    """One meaning: its word, its hexadecimal colour on a light and on a dark page."""

    meaning: str
    light: str
    dark: str

    def on(self, mode: Mode) -> str:
        """The colour for a page in this mode."""
        return self.dark if mode == "dark" else self.light


#: What memory and traffic are made of. These five share pictures.
PARTS: Final[dict[str, Colour]] = {
    "weights": Colour("weights", "#3c469c", "#6e8ddd"),
    "kv": Colour("KV cache", "#c96500", "#f7a21f"),
    "activations": Colour("activations", "#159670", "#4ff199"),
    "communication": Colour("communication", "#a965bc", "#d6b3d9"),
    "overhead": Colour("overhead", "#735976", "#ab97a2"),
}

#: What a step does. These two share pictures.
PHASES: Final[dict[str, Colour]] = {
    "prefill": Colour("prefill", "#6552c7", "#a6a3ff"),
    "decode": Colour("decode", "#b02930", "#f97765"),
}

COLOURS: Final[dict[str, Colour]] = {**PARTS, **PHASES}

#: Requests that share a picture take turns with these; a letter on each mark says which it is.
REQUESTS: Final[dict[str, Colour]] = {
    "request-0": Colour("requests A, E, I and so on", "#3e6afb", "#6d74f2"),
    "request-1": Colour("requests B, F, J and so on", "#740f15", "#e7c406"),
    "request-2": Colour("requests C, G, K and so on", "#c84d35", "#35d3f8"),
    "request-3": Colour("requests D, H, L and so on", "#2a2697", "#d8545a"),
}

#: What is compared in one picture, where no meaning above fits; each has a shape of its own as well.
MARKS: Final[dict[str, Colour]] = {
    "mark-0": Colour("first kind", "#0c4dd8", "#5ab6ff"),
    "mark-1": Colour("second kind", "#da5f0c", "#f27d45"),
    "mark-2": Colour("third kind", "#0f9b6d", "#5df1c7"),
    "mark-3": Colour("fourth kind", "#9b4c93", "#c289af"),
    "mark-4": Colour("fifth kind", "#442281", "#827ae4"),
    "mark-5": Colour("sixth kind", "#6b481e", "#e5f664"),
}

#: Ink for text and predicted outlines, muted ink for axes, and the page itself.
INK: Final = Colour("ink", "#12151b", "#e8eaee")
MUTED: Final = Colour("muted ink", "#596270", "#aab1bd")
GRID: Final = Colour("grid line", "#e1e4ea", "#333b48")
PAGE: Final = Colour("page", "#ffffff", "#14181f")

#: The part whose bytes an operator mostly moves, by the operator's kind.
PART_OF_KIND: Final[dict[str, str]] = {
    "linear": "weights",
    "lookup": "weights",
    "attention": "kv",
    "kv_write": "kv",
    "norm": "activations",
    "rope": "activations",
    "elementwise": "activations",
    "sample": "overhead",
    "recurrence": "kv",  # a state is a cache that does not grow
    "collective": "overhead",
}


def stylesheet() -> str:
    """CSS that names every meaning as a class: ``fill-kv`` fills, ``line-kv`` strokes.

    The light colours hold by default, the dark ones inside an element with ``data-mode="dark"``,
    so one picture serves both and turns at once when the visitor switches.
    """
    named = {**COLOURS, **REQUESTS, **MARKS, "ink": INK, "muted": MUTED, "grid": GRID, "page": PAGE}
    rules = []
    for name, colour in named.items():
        rules.append(f".fill-{name}{{fill:{colour.light}}}.line-{name}{{stroke:{colour.light}}}")
    for name, colour in named.items():
        dark = '[data-mode="dark"] '
        rules.append(f"{dark}.fill-{name}{{fill:{colour.dark}}}{dark}.line-{name}{{stroke:{colour.dark}}}")
    return "".join(rules)
