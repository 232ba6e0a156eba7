"""The pictures of "Roofline" for a scene: the roof alone, and every operator under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.roof_points import PHASES, peak_flops_per_s, roof_pass
from core.lesson.quantities.roofline import critical_batch, weight_bytes
from core.ui.figures.operator_roof import BatchMark, bare_roof, operator_roof
from core.ui.picture import Picture
from core.units import FLOPS_PER_MAC

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _bare_roof(scene: Scene) -> Picture:
    machine = scene.case.machine
    return bare_roof(peak_flops_per_s(scene.case), machine.bandwidth_bytes_per_s, machine.name)


def _operator_roof(scene: Scene) -> Picture:
    case = scene.case
    return operator_roof(
        [roof_pass(case, phase) for phase in PHASES],
        peak_flops_per_s(case),
        case.machine.bandwidth_bytes_per_s,
        critical_batch(case).value,
        _mark(scene),
    )


def _mark(scene: Scene) -> BatchMark | None:
    """The learner's batch where the question's own matrix lies with it."""
    said = None if scene.prediction is None else scene.prediction.value
    if said is None:
        return None
    return BatchMark(said, FLOPS_PER_MAC * said / weight_bytes(scene.lesson.base_case).value)


#: The pictures that lessons may name, and the functions that draw each.
PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "bare_roof": _bare_roof,
    "operator_roof": _operator_roof,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "bare_roof": (bare_roof,),
    "operator_roof": (operator_roof,),
}
