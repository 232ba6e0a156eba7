"""What sharing a grid costs: the error by granularity, and where in the tensor it arises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from core.ui.figures.factor_rows import WIDTH, FactorRow, draw_rows, factor_axis, height
from core.ui.figures.shades import draw_key, shade
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing
from core.units import significant

_LEFT: Final = 6
_CELL: Final = (34.0, 16.0)
_GAP: Final = 46


@redrawable
def rounding_errors(
    errors: Mapping[str, float],
    base: str,
    picked: str,
    *,
    blocks: Sequence[Sequence[float]],
    ends: tuple[float, float],
    said: float | None,
) -> Picture:
    """Draw the factors, then a map of the tensor with the grids that are picked.

    Args:
        errors: mean-square error by what shares a grid, from the coarsest to the finest.
        base: what the others are factors of.
        picked: the one on the page.
        blocks: mean-square error of parts of the tensor as it is rounded now, [rows][parts].
        ends: least and largest of such errors over all granularities, so that shades mean the same in each.
        said: the learner's factor for the coarsest; None where there is none.
    """
    coarsest = next(iter(errors))
    rows = [
        FactorRow(
            name,
            significant(error),
            error / errors[base],
            "fill-weights",
            mark=said if name == coarsest else None,
            strong=name == picked,
        )
        for name, error in errors.items()
    ]
    marks = [] if said is None else [said]
    axis = factor_axis([*(row.factor or 1.0 for row in rows), *marks])
    top = height(rows)
    drawing = Drawing(WIDTH, top + _GAP + 16 + _CELL[1] * len(blocks) + 34)
    draw_rows(drawing, rows, axis)
    _map(drawing, blocks, picked, (top, *ends))
    mine = "" if said is None else f" You said {significant(said)} times."
    each = "; ".join(f"{row.name} {significant(row.factor or 1.0)} times" for row in rows)
    return Picture(
        title=f"Mean-square error, as a factor of that of {base}",
        drawing=drawing,
        alt=f"Error by what shares a grid, as a factor of that of {base}: {each}.{mine} {_said(blocks)}",
        columns=("shares a grid", "mean-square error", f"factor of {base}"),
        rows=[(row.name, errors[row.name], row.factor) for row in rows],
    )


def _map(
    drawing: Drawing, blocks: Sequence[Sequence[float]], picked: str, place: tuple[float, float, float]
) -> None:
    """A box for each part; ``place`` is the top, and the errors of the lightest and the darkest shade."""
    top, least, largest = place
    drawing.text(_LEFT, top + 30, f"Where it arises, with one grid for {picked}", "fill-ink strong")
    span = math.log(largest / least) or 1.0
    for index, row in enumerate(blocks):
        for column, value in enumerate(row):
            x, y = _LEFT + _CELL[0] * column, top + _GAP + _CELL[1] * index
            hover = f"row {index}, part {column}: mean-square error {significant(value)}"
            part = math.log(value / least) / span if value > 0 else 0.0
            shade(drawing, (x, y, _CELL[0] - 1, _CELL[1] - 1), part, hover=hover)
    bottom = top + _GAP + _CELL[1] * len(blocks) + 10
    draw_key(drawing, bottom, f"error {significant(least, 2)}", significant(largest, 2))


def _said(blocks: Sequence[Sequence[float]]) -> str:
    values = sorted(value for row in blocks for value in row)
    middle = values[len(values) // 2]
    return (
        f"Of {len(values)} parts of the tensor the middle one has an error of {significant(middle)}, the "
        f"worst {significant(values[-1])}."
    )
