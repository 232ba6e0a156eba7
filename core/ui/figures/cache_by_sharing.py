"""What a token leaves in the cache, by who shares: in all, and on each of several chips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.lesson.quantities.head_sharing import SharedCache
from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.units import KIB, format_gib, significant

_WIDTH: Final = 560
_LEFT: Final = 6
_RIGHT: Final = 548
_ROW: Final = 50
_BAR: Final = 16


@redrawable
def cache_by_sharing(caches: Sequence[SharedCache], marks: Marks) -> Picture:
    """Draw one row a way to share: a pale bar for all of it, a full one for what lies on each chip.

    Args:
        caches: the ways to share.
        marks: of the prediction.
    """
    top = _ROW * len(caches) + 10
    drawing = Drawing(_WIDTH, top + HEIGHT)
    scale = Scale(0, max(cache.total_bytes for cache in caches), _LEFT, _RIGHT)
    for index, cache in enumerate(caches):
        _row(drawing, cache, scale, _ROW * index)
    draw_marks(drawing, top, "a token with a KV head for each query head", marks)
    chips = caches[0].chips
    listed = "; ".join(_said(cache) for cache in caches)
    return Picture(
        title="What a token leaves in the cache",
        drawing=drawing,
        alt=f"By who shares: {listed}.{marks.sentence}",
        columns=("sharing", "bytes a token", "KiB a token", f"KiB on each of {chips}", "copies"),
        rows=[
            (
                cache.name,
                round(cache.total_bytes),
                cache.total_bytes / KIB,
                cache.chip_bytes / KIB,
                cache.copies,
            )
            for cache in caches
        ],
        legend=(
            Label("band fill-kv", "all of it, once"),
            *((Label("fill-kv", f"on each of {chips} chips"),) if chips > 1 else ()),
        ),
    )


def _row(drawing: Drawing, cache: SharedCache, scale: Scale, top: float) -> None:
    drawing.text(_LEFT, top + 18, cache.name, "fill-ink strong")
    drawing.text(_RIGHT, top + 18, _value(cache), "fill-ink", anchor="end")
    y, right = top + 25, max(scale(cache.total_bytes), _LEFT + 2)
    hover = f"{cache.name}: {format_gib(cache.total_bytes)}"
    drawing.rectangle(_LEFT, y, right - _LEFT, _BAR, "band fill-kv", hover=hover)
    frame = [(_LEFT, y), (right, y), (right, y + _BAR), (_LEFT, y + _BAR), (_LEFT, y)]
    drawing.path(frame, "thin line-kv")
    if cache.chips > 1:
        width = max(scale(cache.chip_bytes) - _LEFT, 1.5)
        on_each = f"{format_gib(cache.chip_bytes)} on each chip"
        drawing.rectangle(_LEFT, y + 3, width, _BAR - 6, "fill-kv", hover=on_each)


def _value(cache: SharedCache) -> str:
    if cache.chips == 1:
        return format_gib(cache.total_bytes)
    return f"{format_gib(cache.total_bytes)}, on each {format_gib(cache.chip_bytes)}"


def _said(cache: SharedCache) -> str:
    said = f"{cache.name} {format_gib(cache.total_bytes)}"
    if cache.chips == 1:
        return said
    copies = "" if cache.copies <= 1 else f", kept {significant(cache.copies)} times"
    return f"{said}, on each of {cache.chips} chips {format_gib(cache.chip_bytes)}{copies}"
