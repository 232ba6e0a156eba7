"""A committed prediction: what was said, what is true, and how far off that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from core.errors import RequestError
from core.lesson.amount import Amount
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import CONFIDENCES, PredictedOption
from core.units import significant

#: A number within this factor of the true one counts as close.
CLOSE_FACTOR: Final = 2.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """One lesson's prediction, committed once.

    Attributes:
        lesson: its id. kind: "number", "choice", or "skipped" where the answer was shown at once.
        value: the number said, None otherwise. choice: the option's id, empty otherwise.
        true_value: the quantity when it was committed. unit: of both. true_choice: the right option's id.
        confidence: one of ``CONFIDENCES``, empty where it was skipped.
    """

    lesson: str
    kind: Literal["number", "choice", "skipped"]
    value: float | None
    choice: str
    true_value: float
    unit: str
    true_choice: str
    confidence: str

    @property
    def factor(self) -> float | None:
        """How far off a number is, as a factor of 1 or more; None for a choice or where it was skipped."""
        if self.value is None:
            return None
        return max(self.value / self.true_value, self.true_value / self.value)

    @property
    def right(self) -> bool | None:
        """Whether it was close, or the right choice; None where it was skipped."""
        if self.kind == "skipped":
            return None
        factor = self.factor
        return self.choice == self.true_choice if factor is None else factor <= CLOSE_FACTOR

    @property
    def surprising(self) -> bool:
        """Sure and wrong: what a learner remembers best when it is corrected."""
        return self.right is False and self.confidence == CONFIDENCES[-1]

    @property
    def sentence(self) -> str:
        """How close it came."""
        if self.kind == "skipped":
            return "You asked to be shown, so nothing was predicted."
        if self.value is None or self.factor is None:
            return "Your choice was right." if self.right else "Your choice was another one."
        said, true = Amount(self.value, self.unit).text, Amount(self.true_value, self.unit).text
        if self.factor < 1.05:
            return f"You said {said}; it is {true}. That is it."
        side = "high" if self.value > self.true_value else "low"
        return f"You said {said}; it is {true}. That is {significant(self.factor)} times too {side}."


def predict_number(lesson: Lesson, value: float, confidence: str) -> Prediction:
    """Commit a number on the lesson's scale.

    Raises:
        RequestError: it lies outside the scale, or the confidence is unknown.
    """
    asked = lesson.prediction
    if not asked.low <= value <= asked.high or not math.isfinite(value):
        raise RequestError(
            f"A prediction here must be from {asked.low:,g} to {asked.high:,g} {asked.unit}; got {value:g}. "
            "Move the mark onto the scale."
        )
    return _committed(lesson, "number", value, "", _known(confidence))


def predict_choice(lesson: Lesson, option: str, confidence: str) -> Prediction:
    """Commit one of the lesson's options, by id.

    Raises:
        RequestError: there is no such option, or the confidence is unknown.
    """
    ids = [known.id for known in lesson.prediction.options]
    if option not in ids:
        raise RequestError(f"A prediction here must be one of {', '.join(ids)}; got {option[:40]!r}.")
    return _committed(lesson, "choice", None, option, _known(confidence))


def skip_prediction(lesson: Lesson) -> Prediction:
    """Record that the answer was shown without a prediction."""
    return _committed(lesson, "skipped", None, "", "")


def true_amount(lesson: Lesson) -> Amount:
    """What the prediction asks for, computed from today's catalogue."""
    found = lesson.quantities[lesson.prediction.quantity](lesson.base_case)
    return found.in_unit(lesson.prediction.unit) if lesson.prediction.kind == "number" else found


def true_option(lesson: Lesson) -> PredictedOption | None:
    """The option nearest to the true value; None where a number is asked for."""
    true = true_amount(lesson).value
    return min(lesson.prediction.options, key=lambda option: abs(option.value - true), default=None)


def _known(confidence: str) -> str:
    if confidence not in CONFIDENCES:
        raise RequestError(
            f"How sure you are must be one of {', '.join(CONFIDENCES)}; got {confidence[:40]!r}."
        )
    return confidence


def _committed(
    lesson: Lesson,
    kind: Literal["number", "choice", "skipped"],
    value: float | None,
    choice: str,
    confidence: str,
) -> Prediction:
    option = true_option(lesson)
    return Prediction(
        lesson=lesson.id,
        kind=kind,
        value=value,
        choice=choice,
        true_value=true_amount(lesson).value,
        unit=lesson.prediction.unit,
        true_choice="" if option is None else option.id,
        confidence=confidence,
    )
