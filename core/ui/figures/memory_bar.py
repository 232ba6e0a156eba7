"""What fills a chip's memory: weights, KV cache, activations, overhead, and what is free."""

from __future__ import annotations

from typing import Final

from core.analytic.memory import Footprint
from core.ui.palette import COLOURS
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.units import GIB, format_gib

_WIDTH: Final = 1000
_HEIGHT: Final = 52
_TOP: Final = 6
_BAR: Final = 40


@redrawable
def memory_bar(need: Footprint, chip: str) -> Picture:
    """Draw one bar: its parts to scale, the chip's usable memory as a frame around them.

    Args:
        need: the parts, one value each.
        chip: its name.
    """
    parts = _parts(need)
    total = sum(parts.values())
    capacity = need.capacity_bytes
    scale = Scale(0, max(total, capacity or 0.0), 2, _WIDTH - 2)
    drawing = Drawing(_WIDTH, _HEIGHT, fixed_height=True)
    start = 0.0
    for part, size in parts.items():
        hover = f"{COLOURS[part].meaning}: {format_gib(size)}"
        left, right = scale(start), scale(start + size)
        drawing.rectangle(left, _TOP, right - left, _BAR, f"fill-{part}", hover=hover)
        start += size
    if capacity is not None:
        drawing.rectangle(scale(0), _TOP, scale(capacity) - scale(0), _BAR, "thin line-ink")
        drawing.path([(scale(capacity), 0), (scale(capacity), _HEIGHT)], "solid line-ink")
    return Picture(
        title="What fills the memory",
        drawing=drawing,
        alt=_alt(parts, total, capacity, chip),
        columns=("part", "bytes", "GiB"),
        rows=_rows(parts, total, capacity),
        legend=_legend(parts, total, capacity),
    )


def _parts(need: Footprint) -> dict[str, float]:
    return {
        "weights": float(need.weights_bytes),
        "kv": float(need.kv_bytes),
        "activations": float(need.activation_bytes),
        "overhead": float(need.overhead_bytes),
    }


def _legend(parts: dict[str, float], total: float, capacity: float | None) -> tuple[Label, ...]:
    labels = [
        Label(f"fill-{part}", COLOURS[part].meaning, format_gib(size) if size else "none")
        for part, size in parts.items()
    ]
    if capacity is None:
        labels.append(Label("outline line-muted", "usable memory", "unknown"))
    elif total <= capacity:
        labels.append(Label("thin line-ink", "free", format_gib(capacity - total)))
    else:
        labels.append(Label("thin line-ink", "past the end of the memory", format_gib(total - capacity)))
    return tuple(labels)


def _alt(parts: dict[str, float], total: float, capacity: float | None, chip: str) -> str:
    listed = ", ".join(f"{COLOURS[part].meaning} {format_gib(size)}" for part, size in parts.items())
    if capacity is None:
        return f"Memory: {listed}; {format_gib(total)} in all. What {chip} offers is unknown."
    left = "free" if total <= capacity else "missing"
    return (
        f"Memory: {listed}; {format_gib(total)} of the {format_gib(capacity)} that {chip} offers, "
        f"{format_gib(abs(capacity - total))} {left}."
    )


def _rows(
    parts: dict[str, float], total: float, capacity: float | None
) -> list[tuple[str, int | None, float | None]]:
    def row(name: str, size: float | None) -> tuple[str, int | None, float | None]:
        return (name, None, None) if size is None else (name, round(size), size / GIB)

    rows = [row(COLOURS[part].meaning, size) for part, size in parts.items()]
    free = None if capacity is None else capacity - total
    return [*rows, row("all of it", total), row("usable memory", capacity), row("free", free)]
