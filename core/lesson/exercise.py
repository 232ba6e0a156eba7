"""Exercises: numbers drawn from a seed, answers checked with a tolerance, wrong ones diagnosed.

The same seed gives the same numbers on every machine, so a teacher's link poses one question to the
whole room.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from core.lesson.amount import Amount, LessonCase, Value
from core.lesson.answer import read_number
from core.lesson.catalogue_case import catalogue_case
from core.lesson.diagnosis import DIAGNOSES, Slip
from core.lesson.filled import fill
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Exercise
from core.lesson.quantities import REGISTRY

SEEDS: Final = (0, 999_999)
#: Reasons that one wrong answer is given at most.
_MOST_REASONS: Final = 2
#: Below this tolerance no neighbouring number counts.
_EXACT: Final = 0.005


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer came to: whether it is right, and a sentence or two."""

    correct: bool
    sentence: str
    value: float


@dataclass(frozen=True, slots=True)
class Instance:
    """An exercise with its numbers drawn.

    Attributes:
        exercise: what was drawn from. seed: with which. values: what was drawn, by name.
        case: the numbers' case. question, solution: with the numbers in them. answer: the right one.
    """

    exercise: Exercise
    seed: int
    values: dict[str, Value]
    case: LessonCase
    question: str
    solution: str
    answer: Amount

    @property
    def tolerance_text(self) -> str:
        """How exact an answer must be, in words."""
        if self.exercise.tolerance < _EXACT:
            return "It must be this number."
        return f"Within {self.exercise.tolerance:.0%} counts as right."

    def check(self, text: str) -> Verdict:
        """Check a typed answer.

        Raises:
            AnswerError: it cannot be read as a number of this kind.
        """
        typed = read_number(text, self.exercise.unit)
        if _near(typed.value, self.answer.value, self.exercise.tolerance):
            return Verdict(True, f"Right: {self.answer.text}.", typed.value)
        reasons = [
            slip.says
            for slip in self._slips()
            if _near(typed.value, slip.factor * self.answer.value, self.exercise.tolerance)
        ]
        sentence = " Or: ".join(dict.fromkeys(reasons[:_MOST_REASONS])) or _direction(typed, self.answer)
        return Verdict(False, sentence, typed.value)

    def _slips(self) -> Iterator[Slip]:
        """Every slip of this case that could not be mistaken for the right answer."""
        for slip in self._all_slips():
            # Two tolerances apart, so that no answer is near both.
            if abs(math.log(slip.factor)) > 2 * math.log1p(self.exercise.tolerance):
                yield slip

    def _all_slips(self) -> Iterator[Slip]:
        quantities = REGISTRY[self.exercise.lesson]
        for wrong in self.exercise.wrong:
            amount = quantities[wrong.quantity](self.case).in_unit(self.exercise.unit)
            yield Slip(amount.value / self.answer.value, fill(wrong.says, self.case, quantities))
        for name in self.exercise.diagnoses:
            yield from DIAGNOSES[name](self.case, self.answer)


def _near(value: float, target: float, tolerance: float) -> bool:
    return abs(value - target) <= tolerance * target


def _direction(typed: Amount, right: Amount) -> str:
    large = typed.value > right.value
    factor = typed.value / right.value if large else right.value / typed.value
    far = ", by more than a hundred times" if factor > 100 else ""
    return f"Too {'large' if large else 'small'}{far}. Check each factor and its unit, then try again."


def draw(lesson: Lesson, exercise: Exercise, seed: int) -> Instance:
    """Draw an exercise's numbers; the same seed draws the same."""
    # A text seed is hashed the same way in every Python; each name has a stream of its own, so that a
    # further parameter changes no other's numbers.
    values = {
        name: random.Random(f"{lesson.id}/{exercise.id}/{name}/{seed}").choice(choices)  # noqa: S311
        for name, choices in exercise.parameters.items()
    }
    case = catalogue_case({**lesson.base, **values})
    quantities = REGISTRY[lesson.id]
    return Instance(
        exercise=exercise,
        seed=seed,
        values=values,
        case=case,
        question=fill(exercise.question, case, quantities),
        solution=fill(exercise.solution, case, quantities),
        answer=quantities[exercise.quantity](case).in_unit(exercise.unit),
    )


def read_seed(text: str | None) -> tuple[int, str]:
    """Take a seed out of a link: the seed, and a sentence where it had to be repaired.

    >>> read_seed("12"), read_seed(None), read_seed("x")[0]
    ((12, ''), (0, ''), 0)
    """
    low, high = SEEDS
    if text is None:
        return low, ""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        return low, f"A seed must be a whole number; the link says {text[:40]!r}, so {low} is used."
    seed = min(int(text), high)
    if seed != int(text):
        return seed, f"A seed must be up to {high:,}; the link says {int(text):,}, so {high:,} is used."
    return seed, ""
