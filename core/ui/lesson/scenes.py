"""From a lesson's picture names to pictures: what each draws, with the learner's mark in it.

A picture draws numbers; which numbers, and whether the answer layer is there, is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from core.lesson.amount import LessonCase
from core.lesson.lesson import Lesson
from core.lesson.prediction import Prediction, true_amount
from core.lesson.quantities.answer_timeline import timeline
from core.lesson.quantities.kv_cache import work_by_step
from core.ui.figures.answer_timeline import answer_timeline, timed_answer_timeline
from core.ui.figures.cached_work_and_memory import (
    Guess,
    cached_work_and_memory,
    recomputed_work_and_memory,
)
from core.ui.figures.pass_work import RatioScale, pass_work
from core.ui.figures.token_triangle import cached_triangle, recomputed_triangle, token_triangle
from core.ui.lesson import (
    hardware_scenes,
    inside_a_gpu_scenes,
    memory_scenes,
    one_token_scenes,
    parallelism_scenes,
    quantising_scenes,
    roofline_scenes,
    serving_scenes,
    sharing_scenes,
    speculation_scenes,
)
from core.ui.picture import Picture


@dataclass(frozen=True, slots=True)
class Scene:
    """What a lesson's picture is drawn from.

    Attributes:
        case: the page's own. prediction: the learner's, None before it was made.
        answered: whether the answer layer may be seen.
    """

    lesson: Lesson
    case: LessonCase
    prediction: Prediction | None
    answered: bool

    @property
    def keeps(self) -> bool:
        """Whether keys and values are kept, on a page that lets one choose."""
        return bool(self.case.settings.get("cache", True))

    @property
    def steps(self) -> int:
        """Decode steps after the first token."""
        return max(self.case.scenario.output_tokens - 1, 0)


def _answer_timeline(scene: Scene) -> Picture:
    draw = timed_answer_timeline if scene.answered else answer_timeline
    scenario = scene.case.scenario
    return draw(timeline(scene.case), scenario.input_tokens, scene.steps, scenario.batch)


def _pass_work(scene: Scene) -> Picture:
    asked, scenario = scene.lesson.prediction, scene.case.scenario
    scale = RatioScale(
        low=asked.low,
        high=asked.high,
        said=None if scene.prediction is None else scene.prediction.value,
        true=true_amount(scene.lesson).value,
        now=scene.lesson.quantities[asked.quantity](scene.case).value,
    )
    return pass_work(timeline(scene.case), scenario.batch * scenario.input_tokens, scenario.batch, scale)


def _token_triangle(scene: Scene) -> Picture:
    draw = token_triangle
    if scene.answered:
        draw = cached_triangle if scene.keeps else recomputed_triangle
    return draw(scene.case.scenario.input_tokens, max(scene.steps, 1))


def _cached_work_and_memory(scene: Scene) -> Picture:
    scenario = scene.case.scenario
    # The same answer from an empty prompt passes through every context on the way.
    whole = {"input_tokens": 1, "output_tokens": scenario.input_tokens + scenario.output_tokens - 1}
    draw = cached_work_and_memory if scene.keeps else recomputed_work_and_memory
    return draw(work_by_step(scene.case.having(whole)), scenario.input_tokens, _guess(scene))


def _guess(scene: Scene) -> Guess | None:
    choice = scene.prediction.choice if scene.prediction else ""
    options = (option for option in scene.lesson.prediction.options if option.id == choice)
    return next((Guess(option.text, option.value) for option in options), None)


#: Every picture that a lesson may name.
PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "answer_timeline": _answer_timeline,
    "pass_work": _pass_work,
    "token_triangle": _token_triangle,
    "cached_work_and_memory": _cached_work_and_memory,
    **memory_scenes.PICTURES,
    **sharing_scenes.PICTURES,
    **hardware_scenes.PICTURES,
    **one_token_scenes.PICTURES,
    **inside_a_gpu_scenes.PICTURES,
    **roofline_scenes.PICTURES,
    **serving_scenes.PICTURES,
    **parallelism_scenes.PICTURES,
    **quantising_scenes.PICTURES,
    **speculation_scenes.PICTURES,
}

#: The functions that draw each, for the page's own source.
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "answer_timeline": (answer_timeline, timed_answer_timeline),
    "pass_work": (pass_work,),
    "token_triangle": (token_triangle, cached_triangle, recomputed_triangle),
    "cached_work_and_memory": (cached_work_and_memory, recomputed_work_and_memory),
    **memory_scenes.DRAWN_BY,
    **sharing_scenes.DRAWN_BY,
    **hardware_scenes.DRAWN_BY,
    **one_token_scenes.DRAWN_BY,
    **inside_a_gpu_scenes.DRAWN_BY,
    **roofline_scenes.DRAWN_BY,
    **serving_scenes.DRAWN_BY,
    **parallelism_scenes.DRAWN_BY,
    **quantising_scenes.DRAWN_BY,
    **speculation_scenes.DRAWN_BY,
}
