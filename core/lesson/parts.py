"""The parts of a lesson's picture that can be opened: they follow from the model, so no file lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from core.lesson.amount import LessonCase
from core.lesson.lesson import Lesson
from core.lesson.quantities.memory_levels import level_names
from core.lesson.quantities.token_work import operator_names

#: Lesson id -> the names of the parts for a case.
_PARTS: Final[Mapping[str, Callable[[LessonCase], Sequence[str]]]] = {
    "one_token": operator_names,
    "inside_a_gpu": level_names,
}


def parts(lesson: Lesson, case: LessonCase) -> Sequence[str]:
    """The names of the parts, in order; the lesson must have a control of this kind.

    Raises:
        UserError: the case has no picture.
    """
    return _PARTS[lesson.id](case)
