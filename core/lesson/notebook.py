"""The lab notebook: what a learner predicted, chose and tried, kept through the visit.

Every change makes a new notebook. It is saved as a small JSON file that holds data only; texts in it
stay texts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from core.catalog.plain_text import plain_text
from core.errors import RecordError
from core.lab.checked_json import parse
from core.lesson.answer import LONGEST_ANSWER
from core.lesson.exercise import Instance, Verdict
from core.lesson.lesson import Lesson
from core.lesson.notebook_entries import (
    Attempt,
    Chosen,
    QuestionKind,
    read_attempt,
    read_chosen,
    read_prediction,
)
from core.lesson.prediction import Prediction
from core.lesson.run_guess import RunGuess, read_run_guess
from core.units import MB

SCHEMA: Final = "llm-inference-lab/notebook"
VERSION: Final = 1
MOST_BYTES: Final = MB
#: Entries of each kind; a course has far fewer.
MOST_ENTRIES: Final = 500
_WHAT: Final = "A notebook"


@dataclass(frozen=True, slots=True)
class LessonProgress:
    """How far a lesson is.

    Attributes:
        predicted: committed or skipped. explained: the "because" was answered. solved: exercises answered
            right, of ``exercises``. attempts: answers given.
    """

    predicted: bool
    explained: bool
    solved: int
    exercises: int
    attempts: int

    @property
    def done(self) -> bool:
        """Every exercise was solved: doing counts, reading does not."""
        return self.solved == self.exercises

    @property
    def begun(self) -> bool:
        """Anything was done."""
        return self.predicted or self.explained or self.attempts > 0


@dataclass(frozen=True, slots=True)
class Notebook:
    """Everything a learner did, in order.

    >>> Notebook().empty
    True
    """

    predictions: tuple[Prediction, ...] = ()
    chosen: tuple[Chosen, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    runs: tuple[RunGuess, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing was done yet."""
        return self.size == 0

    @property
    def size(self) -> int:
        """Entries of all kinds."""
        return len(self.predictions) + len(self.chosen) + len(self.attempts) + len(self.runs)

    def prediction(self, lesson: str) -> Prediction | None:
        """What was predicted in a lesson, if anything."""
        return next((entry for entry in self.predictions if entry.lesson == lesson), None)

    def answer(self, lesson: str, kind: QuestionKind) -> Chosen | None:
        """The latest answer to a lesson's "because" or recall."""
        answers = (a for a in reversed(self.chosen) if (a.lesson, a.kind) == (lesson, kind))
        return next(answers, None)

    def tries(self, lesson: str, exercise: str) -> tuple[Attempt, ...]:
        """Every answer to an exercise, in order."""
        return tuple(a for a in self.attempts if (a.lesson, a.exercise) == (lesson, exercise))

    def with_prediction(self, made: Prediction) -> Notebook:
        """Keep a prediction; a lesson's first one stays, since it is committed once."""
        if self.prediction(made.lesson) is not None:
            return self
        return replace(self, predictions=(*self.predictions, made))

    def with_choice(self, lesson: Lesson, kind: QuestionKind, option: int) -> Notebook:
        """Keep an answer to a lesson's "because" or recall, by the option's index.

        Raises:
            RecordError: the notebook is full.
        """
        choice = lesson.recall.choice if kind == "recall" and lesson.recall else lesson.because
        _check_room(self.chosen)
        answer = Chosen(lesson.id, kind, option, choice.options[option].right)
        return replace(self, chosen=(*self.chosen, answer))

    def with_attempt(self, instance: Instance, typed: str, verdict: Verdict) -> Notebook:
        """Keep an answer to an exercise; the same answer given again at once is one answer.

        Raises:
            RecordError: the notebook is full.
        """
        attempt = Attempt(
            lesson=instance.exercise.lesson,
            exercise=instance.exercise.id,
            seed=instance.seed,
            typed=plain_text(typed, LONGEST_ANSWER),
            value=verdict.value,
            correct=verdict.correct,
            sentence=verdict.sentence,
        )
        if self.attempts and self.attempts[-1] == attempt:
            return self
        _check_room(self.attempts)
        return replace(self, attempts=(*self.attempts, attempt))

    def with_run(self, guess: RunGuess) -> Notebook:
        """Keep a run of the lab with what was predicted of it.

        Raises:
            RecordError: the notebook is full.
        """
        _check_room(self.runs)
        return replace(self, runs=(*self.runs, guess))

    def with_last_run(self, guess: RunGuess) -> Notebook:
        """Put a run's result or reason in the place of the run that was kept last."""
        return replace(self, runs=(*self.runs[:-1], guess))

    def progress(self, lesson: Lesson) -> LessonProgress:
        """How far a lesson is."""
        tries = [attempt for attempt in self.attempts if attempt.lesson == lesson.id]
        solved = {attempt.exercise for attempt in tries if attempt.correct}
        return LessonProgress(
            predicted=self.prediction(lesson.id) is not None,
            explained=self.answer(lesson.id, "because") is not None,
            solved=len(solved & {exercise.id for exercise in lesson.exercises}),
            exercises=len(lesson.exercises),
            attempts=len(tries),
        )

    def to_json(self) -> str:
        """The file's text, read back by ``load``."""
        return json.dumps({"schema": SCHEMA, "version": VERSION, **asdict(self)}, indent=1)


def _check_room(entries: tuple[object, ...]) -> None:
    if len(entries) >= MOST_ENTRIES:
        raise RecordError(
            f"A notebook may hold up to {MOST_ENTRIES:,} answers of a kind; this one is full. Save it and "
            "start a new one."
        )


def load(text: str | bytes) -> Notebook:
    """Read a saved notebook.

    Raises:
        RecordError: it is too large, no notebook, of another version, or a value does not fit.
    """
    reader = parse(text, _WHAT, MOST_BYTES)
    reader.text("schema", (SCHEMA,))
    version = reader.whole("version")
    if version != VERSION:
        raise RecordError(
            f"A notebook must be of version {VERSION}; this one is of version {version:,}. Open it with the "
            "app that saved it."
        )
    predictions = tuple(read_prediction(entry) for entry in reader.objects("predictions"))
    if len({made.lesson for made in predictions}) != len(predictions):
        reader.refuse("predictions", "one prediction a lesson")
    found = Notebook(
        predictions=predictions,
        chosen=tuple(read_chosen(entry) for entry in reader.objects("chosen")),
        attempts=tuple(read_attempt(entry) for entry in reader.objects("attempts")),
        # Files that were saved before the lab kept its runs have none.
        runs=tuple(map(read_run_guess, reader.objects("runs") if "runs" in reader.data else ())),
    )
    for name, entries in (
        ("predictions", found.predictions),
        ("chosen", found.chosen),
        ("attempts", found.attempts),
        ("runs", found.runs),
    ):
        if len(entries) > MOST_ENTRIES:
            reader.refuse(name, f"up to {MOST_ENTRIES:,} entries")
    return found
