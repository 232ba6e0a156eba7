"""The pictures of "One token, counted" for a scene: the operators in order, and the same as areas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from core.lesson.prediction import true_amount
from core.lesson.quantities.token_work import shaped_model, work_by_operator
from core.ui.figures.block_diagram import block_diagram, counted_block_diagram
from core.ui.figures.mark_scale import Marks
from core.ui.figures.token_areas import Counted, token_areas
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def the_way(scene: Scene) -> Picture:
    """The operators in order, with their counts once the prediction was made."""
    draw = counted_block_diagram if scene.answered else block_diagram
    works = work_by_operator(scene.case)
    return draw(works, shaped_model(scene.case).num_layers, scene.case.word("operator"))


def the_areas(scene: Scene) -> Picture:
    """The operators by their size, with the learner's mark."""
    counted = cast("Counted", scene.case.word("counted"))
    return token_areas(work_by_operator(scene.case), counted, scene.case.word("operator"), marks(scene))


def marks(scene: Scene) -> Marks:
    """The scale of a lesson's prediction, in the unit that it is asked in."""
    asked = scene.lesson.prediction
    return Marks(
        low=asked.low,
        high=asked.high,
        unit=asked.unit,
        said=None if scene.prediction is None else scene.prediction.value,
        true=true_amount(scene.lesson).value,
        now=scene.lesson.quantities[asked.quantity](scene.case).in_unit(asked.unit).value,
    )


#: The pictures that lessons may name, and the functions that draw each.
PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "block_diagram": the_way,
    "token_areas": the_areas,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "block_diagram": (block_diagram, counted_block_diagram),
    "token_areas": (token_areas,),
}
