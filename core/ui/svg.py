"""A small drawing board: scales, ticks, and SVG shapes with hover texts.

Figures speak of classes of the palette (``fill-kv``, ``line-ink``), never of colours, so that one
drawing serves the light and the dark page. Every text is escaped here, and only here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Final

#: Logarithmic axes have so many ticks, about.
_MOST_TICKS: Final = 7
#: Values within a power of ten, the more the finer: of an axis over several powers, and of a shorter one.
_WIDE: Final = ((1, 2, 5), (1, 3), (1,))
_NARROW: Final = tuple(
    tuple(1 + step * part for part in range(round(9 / step))) for step in (1, 0.5, 0.2, 0.1)
)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values ``low..high`` to coordinates ``start..end``.

    >>> Scale(0, 10, 100, 200)(5)
    150.0
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The coordinate of a value; a value outside the scale is drawn at its edge."""
        span = self.high - self.low
        part = (value - self.low) / span if span else 0.0
        return self.start + min(max(part, 0.0), 1.0) * (self.end - self.start)


def ticks(high: float, wanted: int = 4) -> list[float]:
    """Round values from 0 to ``high``, steps of 1, 2 or 5 times a power of ten.

    >>> ticks(10.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    if not math.isfinite(high) or high <= 0:
        return [0.0]
    rough = high / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.8)
    return [round(step * index, 12) for index in range(int(high / step + 1e-9) + 1)]


def log_ticks(axis: Scale) -> list[float]:
    """Round values on an axis of logarithms to the base 10, two or more.

    >>> log_ticks(Scale(0.0, 2.0, 0, 500)), log_ticks(Scale(2.01, 2.16, 0, 500))
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], [120.0, 140.0])
    """
    wide = [_within(axis, steps) for steps in _WIDE]
    found = next((few for few in wide if len(few) <= _MOST_TICKS), wide[-1])
    if len(found) > 1:
        return found
    return next((more for steps in _NARROW if len(more := _within(axis, steps)) > 1), found)


def _within(axis: Scale, steps: Iterable[float]) -> list[float]:
    powers = range(math.floor(axis.low), math.ceil(axis.high) + 1)
    values = [round(10.0**power * step, 12 - power) for power in powers for step in steps]
    return [value for value in values if axis.low <= math.log10(value) <= axis.high]


@dataclass(slots=True)
class Drawing:
    """An SVG in the making; coordinates are its own units, stretched to the width it is given."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)
    fixed_height: bool = False  # only its width is stretched; for marks without words

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str,
        *,
        hover: str = "",
        round: float = 0,
        pick: str = "",
    ) -> None:
        """A rectangle; its hover text is shown while the pointer rests on it.

        ``pick`` is the name that a click on it stands for, where the picture has a listener.
        """
        picked = f' data-pick="{escape(pick)}"' if pick else ""
        self._shape(
            f'rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" '
            f'rx="{round:g}" class="{escape(style)}"{picked}',
            hover,
        )

    def circle(self, x: float, y: float, radius: float, style: str, *, hover: str = "") -> None:
        """A filled or outlined dot."""
        self._shape(f'circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{escape(style)}"', hover)

    def path(self, points: Iterable[tuple[float, float]], style: str, *, hover: str = "") -> None:
        """A line through points; a style with a fill closes it to an area."""
        self.paths([points], style, hover=hover)

    def paths(self, lines: Iterable[Iterable[tuple[float, float]]], style: str, *, hover: str = "") -> None:
        """Several lines or areas of one style as one shape, which a browser draws far faster than many."""
        text = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) for points in lines)
        self._shape(f'path d="{text}" class="{escape(style)}"', hover)

    def text(self, x: float, y: float, words: str, style: str = "", *, anchor: str = "start") -> None:
        """One line of text; ``anchor`` is start, middle or end."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="t {escape(style)}">'
            f"{escape(words)}</text>"
        )

    def markup(self) -> str:
        """The whole picture; it is hidden from screen readers, which get its ``alt`` and its table."""
        stretch = (
            f'preserveAspectRatio="none" class="flat" style="height:{self.height:g}px" '
            if self.fixed_height
            else ""
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" {stretch}'
            f'aria-hidden="true" focusable="false">{"".join(self.parts)}</svg>'
        )

    def _shape(self, tag: str, hover: str) -> None:
        if hover:
            name = tag.partition(" ")[0]
            self.parts.append(f"<{tag}><title>{escape(hover)}</title></{name}>")
        else:
            self.parts.append(f"<{tag}/>")
