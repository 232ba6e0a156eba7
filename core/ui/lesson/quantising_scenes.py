"""The pictures of "Quantising weights and activations" for a scene: values on a grid, and their error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.rounding_example import (
    BASE,
    SHARED,
    VIEW,
    block_errors,
    ends,
    error,
    grids,
    setting,
    view,
)
from core.ui.figures.rounding_errors import rounding_errors
from core.ui.figures.values_and_grid import values_and_grid
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _values_and_grid(scene: Scene) -> Picture:
    now = setting(scene.case)
    outside = now.outlier if now.outlier > VIEW else None
    return values_and_grid(view(now), grids(now), "A tensor and the levels of its grid", outside=outside)


def _rounding_errors(scene: Scene) -> Picture:
    now = setting(scene.case)
    said = None if scene.prediction is None else scene.prediction.value
    errors = {shared: error(now, shared) for shared in SHARED}
    blocks = block_errors(now).tolist()
    return rounding_errors(errors, BASE, now.shared, blocks=blocks, ends=ends(now), said=said)


#: The pictures that lessons may name, and the functions that draw each.
PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "values_and_grid": _values_and_grid,
    "rounding_errors": _rounding_errors,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "values_and_grid": (values_and_grid,),
    "rounding_errors": (rounding_errors,),
}
