"""The entries of a notebook, and how each is read back from a file that may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast

from core.catalog.plain_text import plain_text
from core.lab.checked_json import Reader
from core.lesson.amount import UNITS
from core.lesson.answer import LONGEST_ANSWER
from core.lesson.exercise import SEEDS
from core.lesson.lesson_records import CONFIDENCES
from core.lesson.prediction import Prediction

QuestionKind = Literal["because", "recall"]

_LONGEST_ID: Final = 60
_LONGEST_SENTENCE: Final = 600
#: Values of either side of zero are never asked for.
_BOUNDS: Final = (1e-300, 1e300)


@dataclass(frozen=True, slots=True)
class Chosen:
    """An answer to a question with options: the option's index, and whether it was right."""

    lesson: str
    kind: QuestionKind
    option: int
    right: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer to an exercise: as typed, as read, and what was said to it."""

    lesson: str
    exercise: str
    seed: int
    typed: str
    value: float
    correct: bool
    sentence: str


def read_prediction(reader: Reader) -> Prediction:
    """Read a prediction back, or raise a RecordError."""
    kind = cast(
        'Literal["number", "choice", "skipped"]', reader.text("kind", ("number", "choice", "skipped"))
    )
    value = reader.optional_number("value", *_BOUNDS)
    if (value is None) == (kind == "number"):
        reader.refuse("value", "a number where a number was predicted, and null elsewhere")
    return Prediction(
        lesson=_short(reader, "lesson"),
        kind=kind,
        value=value,
        choice=_short(reader, "choice"),
        true_value=reader.number("true_value", *_BOUNDS),
        unit=reader.text("unit", tuple(UNITS)),
        true_choice=_short(reader, "true_choice"),
        confidence=reader.text("confidence", ("",) if kind == "skipped" else CONFIDENCES),
    )


def read_chosen(reader: Reader) -> Chosen:
    """Read an answer back, or raise a RecordError."""
    return Chosen(
        lesson=_short(reader, "lesson"),
        kind=cast("QuestionKind", reader.text("kind", ("because", "recall"))),
        option=reader.whole("option", 0, 9),
        right=reader.flag("right"),
    )


def read_attempt(reader: Reader) -> Attempt:
    """Read an attempt back, or raise a RecordError."""
    return Attempt(
        lesson=_short(reader, "lesson"),
        exercise=_short(reader, "exercise"),
        seed=reader.whole("seed", *SEEDS),
        typed=plain_text(reader.text("typed"), LONGEST_ANSWER),
        value=reader.number("value", *_BOUNDS),
        correct=reader.flag("correct"),
        sentence=plain_text(reader.text("sentence"), _LONGEST_SENTENCE),
    )


def _short(reader: Reader, name: str) -> str:
    return plain_text(reader.text(name), _LONGEST_ID)
