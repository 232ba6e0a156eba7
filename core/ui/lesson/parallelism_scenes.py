"""The pictures of "Parallelism", drawn from a lesson's scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.chip_plan import (
    chips_of_stages,
    pipeline_speed_ups,
    plan_of,
    tensor_speed_ups,
)
from core.ui.figures.chip_speed_up import chip_speed_up
from core.ui.figures.plan_chips import PlanShape, plan_chips
from core.ui.lesson.one_token_scenes import marks
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _plan_chips(scene: Scene) -> Picture:
    plan, machine = plan_of(scene.case).parallel, scene.case.machine
    shape = PlanShape(plan.tp, plan.pp, plan.ep, plan.dp, machine.capacity_bytes)
    return plan_chips(chips_of_stages(scene.case), shape, machine.name)


def _chip_speed_up(scene: Scene) -> Picture:
    return chip_speed_up(tensor_speed_ups(scene.case), pipeline_speed_ups(scene.case), marks(scene))


PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "plan_chips": _plan_chips,
    "chip_speed_up": _chip_speed_up,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "plan_chips": (plan_chips,),
    "chip_speed_up": (chip_speed_up,),
}
