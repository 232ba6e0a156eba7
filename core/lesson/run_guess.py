"""A run of the lab in the notebook: what was predicted of it, how it came out, and the reason given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.catalog.plain_text import plain_text
from core.lab.checked_json import Reader
from core.lesson.lab_questions import lab_questions
from core.lesson.lesson_records import CONFIDENCES
from core.units import significant

_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class RunGuess:
    """One run.

    Attributes:
        settings: of the run, in words.
        option: what was predicted, an option's id; empty where the run was made without a prediction.
        confidence: one of ``CONFIDENCES``; empty without a prediction.
        ratio: measured / predicted time per token; None until the run gave a result.
        reason: what was chosen as the reason, a limit's name; empty before.
        limit: what the arithmetic says it waits for; empty until the run gave a result.
    """

    settings: str
    option: str = ""
    confidence: str = ""
    ratio: float | None = None
    reason: str = ""
    limit: str = ""

    @property
    def right(self) -> bool | None:
        """Whether the prediction came true; None where there is none, or no result."""
        if not self.option or self.ratio is None:
            return None
        return lab_questions().true_option(self.ratio).id == self.option

    @property
    def said(self) -> str:
        """The prediction in words."""
        option = lab_questions().option(self.option)
        return "nothing; it was run at once" if option is None else option.meaning

    @property
    def sentence(self) -> str:
        """What was said, and what came of it."""
        if self.ratio is None:
            return "This run gave no result."
        came = f"A token took {significant(self.ratio)} times as long as the arithmetic says."
        if self.right is None:
            return f"You made no prediction. {came}"
        verdict = "You were right." if self.right else "It came otherwise."
        return f"You said: {self.said}, {self.confidence}. {came} {verdict}"


def read_run_guess(reader: Reader) -> RunGuess:
    """Read a run back out of a notebook's file, or raise a RecordError."""
    questions = lab_questions()
    options = ("", *(option.id for option in questions.options))
    limits = ("", *(reason.limit for reason in questions.reasons))
    option = reader.text("option", options)
    return RunGuess(
        settings=plain_text(reader.text("settings"), _LONGEST),
        option=option,
        confidence=reader.text("confidence", CONFIDENCES if option else ("",)),
        ratio=reader.optional_number("ratio", 1e-6, 1e6),
        reason=reader.text("reason", limits),
        limit=reader.text("limit", limits),
    )
