"""The lab page's questions: how a run will compare with its arithmetic, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from core.catalog.assets import FOLDER
from core.lesson.lesson_file import read_toml_table
from core.lesson.lesson_table import LessonTable

_FILE: Final = FOLDER / "lab.toml"
_LIMITS: Final = ("memory", "compute", "overhead")


@dataclass(frozen=True, slots=True)
class RatioOption:
    """A guess of measured / predicted: a short text, its meaning, and the ratio up to which it holds."""

    id: str
    text: str
    meaning: str
    up_to: float


@dataclass(frozen=True, slots=True)
class Reason:
    """What a pass may wait for, and what to try if it is so; ``limit`` is the prediction's own word."""

    limit: str
    text: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Belief:
    """Something often believed of runs: why it is tempting, what speaks against it, what holds."""

    claim: str
    tempting: str
    evidence: str
    rule: str


@dataclass(frozen=True, slots=True)
class LabQuestions:
    """Everything that the lab asks."""

    question: str
    options: tuple[RatioOption, ...]
    because: str
    reasons: tuple[Reason, ...]
    beliefs: tuple[Belief, ...]

    def option(self, id: str) -> RatioOption | None:
        """An option by id, None where there is none."""
        return next((option for option in self.options if option.id == id), None)

    def true_option(self, ratio: float) -> RatioOption:
        """The option that a ratio of measured to predicted makes right.

        >>> lab_questions().true_option(1.0).id, lab_questions().true_option(7.0).id
        ('same', 'much_more')
        """
        return next((option for option in self.options if ratio <= option.up_to), self.options[-1])


@cache
def lab_questions() -> LabQuestions:
    """The questions of ``assets/lab.toml``.

    Raises:
        LessonFileError: the file lacks something, or has something too much.
    """
    table = read_toml_table(_FILE)
    prediction, because = table.inner("prediction"), table.inner("because")
    found = LabQuestions(
        question=prediction.text("question"),
        options=tuple(_option(option) for option in prediction.tables("options", 2, 5)),
        because=because.text("question"),
        reasons=tuple(_reason(option) for option in because.tables("options", 2, 5)),
        beliefs=tuple(_belief(card) for card in table.tables("misconceptions", 1, 2)),
    )
    for part in (prediction, because, table):
        part.finish()
    return found


def _option(table: LessonTable) -> RatioOption:
    option = RatioOption(
        table.text("id"), table.text("text"), table.text("meaning"), table.number("up_to", 0.0, 1e9)
    )
    table.finish()
    return option


def _reason(table: LessonTable) -> Reason:
    reason = Reason(table.one_of("limit", _LIMITS), table.text("text"), table.text("explanation"))
    table.finish()
    return reason


def _belief(table: LessonTable) -> Belief:
    belief = Belief(*(table.text(name) for name in ("claim", "tempting", "evidence", "rule")))
    table.finish()
    return belief
