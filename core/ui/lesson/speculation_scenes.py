"""The pictures of "Speculative decoding", drawn from a lesson's scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.guess_rounds import fastest, guesses, lengths, rounds
from core.ui.figures.drafted_rounds import drafted_rounds, timed_drafted_rounds
from core.ui.figures.speed_by_length import speed_by_length
from core.ui.lesson.one_token_scenes import marks
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _drafted_rounds(scene: Scene) -> Picture:
    """The rounds; what they take would give the prediction away, so it comes with the answer."""
    draw = timed_drafted_rounds if scene.answered else drafted_rounds
    return draw(rounds(scene.case))


def _speed_by_length(scene: Scene) -> Picture:
    case = scene.case
    return speed_by_length(lengths(case), guesses(case), fastest(case), marks(scene))


PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "drafted_rounds": _drafted_rounds,
    "speed_by_length": _speed_by_length,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "drafted_rounds": (drafted_rounds, timed_drafted_rounds),
    "speed_by_length": (speed_by_length,),
}
