"""What a lesson must hold beyond its shape: names that exist, defaults in range, texts that can be filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.catalog.scenario import LIMITS
from core.errors import UserError
from core.lesson.amount import SCENARIO_FIELDS
from core.lesson.catalogue_case import catalogue_case
from core.lesson.filled import NAME_ENDING, RECORD_NAMES, names_in
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Control, Exercise
from core.lesson.lesson_table import LessonFileError
from core.lesson.quantities import REGISTRY


def check_lesson(lesson: Lesson) -> None:
    """Check a lesson against the registry of quantities and against itself.

    Raises:
        LessonFileError: the first thing that does not hold.
    """
    problem = next(_problems(lesson), None)
    if problem is not None:
        raise LessonFileError(f"{lesson.id}.toml: {problem}.")


def _problems(lesson: Lesson) -> Iterator[str]:
    yield from _base_problems(lesson)
    yield from _quantity_problems(lesson)
    for control in (*lesson.controls, *lesson.beside):
        yield from _control_problems(control)
    for exercise in lesson.exercises:
        yield from _exercise_problems(lesson, exercise)
    yield from _text_problems(lesson)
    yield from _prediction_problems(lesson)
    for formula in lesson.worked:
        missing = [s.symbol for s in formula.symbols if s.symbol not in formula.formula]
        if missing:
            yield f"the formula of {formula.name!r} must hold its symbol {missing[0]!r}"


def _base_problems(lesson: Lesson) -> Iterator[str]:
    try:
        catalogue_case(lesson.base)
    except UserError as problem:
        yield f"base must be of the catalogue ({problem})"


def _quantity_problems(lesson: Lesson) -> Iterator[str]:
    known = REGISTRY[lesson.id]
    named = [lesson.prediction.quantity]
    for formula in lesson.worked:
        named += [formula.quantity, *(symbol.quantity for symbol in formula.symbols)]
    for exercise in lesson.exercises:
        named += [exercise.quantity, *(wrong.quantity for wrong in exercise.wrong)]
    yield from (f"{name!r} must be a quantity of this lesson" for name in named if name not in known)


def _control_problems(control: Control) -> Iterator[str]:
    if control.kind == "switch" and not isinstance(control.default, bool):
        yield f"the switch {control.name!r} must be true or false at the start"
    if control.kind == "choice" and control.default not in control.options:
        yield f"the choice {control.name!r} must start with one of its options"
    if control.kind != "range":
        return
    if type(control.default) is not int or not control.low <= control.default <= control.high:
        yield f"the range {control.name!r} must start between {control.low} and {control.high}"
    if control.logarithmic and control.low < 1:
        yield f"the range {control.name!r} must start at 1 or more to be stepped by factors"
    low, high = LIMITS.get(control.name, (control.low, control.high))
    if not low <= control.low < control.high <= high:
        yield f"the range {control.name!r} must lie within {low:,} and {high:,}"


def _exercise_problems(lesson: Lesson, exercise: Exercise) -> Iterator[str]:
    for name, values in exercise.parameters.items():
        for value in values:
            try:
                catalogue_case({**lesson.base, name: value})
            except UserError as problem:
                yield f"the exercise {exercise.id!r} draws what is not in the catalogue ({problem})"


def _text_problems(lesson: Lesson) -> Iterator[str]:
    for text, own in _texts(lesson):
        settings = {*lesson.base, *own}
        keyed = {name + NAME_ENDING for name in settings}
        known = {*REGISTRY[lesson.id], *SCENARIO_FIELDS, *RECORD_NAMES, *settings, *keyed}
        for name in names_in(text):
            if name not in known:
                yield f"{{{name}}} in {text[:40]!r} must be a known name"


def _texts(lesson: Lesson) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every text that is filled in, with the further names that it may use."""
    for text in (lesson.answer, lesson.prediction.question, lesson.prediction.reveal):
        yield text, {}
    for option in lesson.because.options:
        yield option.explanation, {}
    for formula in lesson.worked:
        yield formula.note, formula.case
        yield formula.about, formula.case
    for card in lesson.misconceptions:
        for text in (card.claim, card.tempting, card.evidence, card.rule, card.source):
            yield text, card.case
    for exercise in lesson.exercises:
        for text in (exercise.question, exercise.solution, *(wrong.says for wrong in exercise.wrong)):
            yield text, exercise.parameters


def _prediction_problems(lesson: Lesson) -> Iterator[str]:
    asked = lesson.prediction
    ids = [option.id for option in asked.options]
    if len(set(ids)) != len(ids):
        yield "the prediction's options must have ids of their own"
    if asked.kind == "number" and asked.quantity in REGISTRY[lesson.id]:
        true = REGISTRY[lesson.id][asked.quantity](lesson.base_case).in_unit(asked.unit)
        if not asked.low < true.value < asked.high:
            yield f"the prediction's scale must contain the true value, {true.text}"
