"""The pictures of "Hardware generations", drawn from a lesson's scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.chip_pair import chip
from core.lesson.quantities.sheet_growth import sheet_growth as growth_of
from core.lesson.quantities.workload_gain import gains
from core.ui.figures.sheet_growth import covered_sheet_growth, sheet_growth
from core.ui.figures.workload_gains import workload_gains
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _names(scene: Scene) -> tuple[str, str]:
    return chip(scene.case, "earlier").name, chip(scene.case, "later").name


def _sheet_growth(scene: Scene) -> Picture:
    lines = growth_of(scene.case)
    if not scene.answered:
        return covered_sheet_growth(lines, *_names(scene))
    return sheet_growth(lines, *_names(scene), _guess(scene, lines[1].factor))


def _guess(scene: Scene, bandwidth_factor: float) -> float | None:
    """The arithmetic's factor that the learner's choice stands for: so many times the bandwidth's.

    None where the page shows other chips than the prediction was asked about.
    """
    settings, asked = scene.case.settings, scene.lesson.base
    if any(settings[name] != asked[name] for name in ("earlier", "later", "precision")):
        return None
    choice = scene.prediction.choice if scene.prediction else ""
    options = (option for option in scene.lesson.prediction.options if option.id == choice)
    return next((bandwidth_factor * option.value for option in options), None)


def _workload_gains(scene: Scene) -> Picture:
    arithmetic, bandwidth, *_ = growth_of(scene.case)
    return workload_gains(gains(scene.case), arithmetic, bandwidth, *_names(scene))


PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "sheet_growth": _sheet_growth,
    "workload_gains": _workload_gains,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "sheet_growth": (covered_sheet_growth, sheet_growth),
    "workload_gains": (workload_gains,),
}
