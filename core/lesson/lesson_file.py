"""Lesson files: ``assets/lessons/ID.toml``, read into a ``Lesson`` and checked while it is read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from core.catalog.assets import FOLDER
from core.lesson.lesson import Lesson
from core.lesson.lesson_checks import check_lesson
from core.lesson.lesson_parts import (
    beside,
    choice,
    controls,
    exercises,
    instructor,
    measurement,
    misconceptions,
    pictures,
    prediction,
    recall,
    terms,
    worked,
)
from core.lesson.lesson_table import LessonFileError, LessonTable
from core.lesson.quantities import REGISTRY

LESSONS: Final = FOLDER / "lessons"


@cache
def lessons() -> Mapping[str, Lesson]:
    """Every lesson by id, in the course's order.

    Raises:
        LessonFileError: a file does not hold a lesson.
    """
    read = [read_lesson(path) for path in sorted(LESSONS.glob("*.toml"))]
    return MappingProxyType({lesson.id: lesson for lesson in sorted(read, key=lambda lesson: lesson.number)})


def read_lesson(path: Path) -> Lesson:
    """Read one file; its name is the lesson's id.

    Raises:
        LessonFileError: it is not TOML, lacks something, or has something too much; the text says where.
    """
    table = read_toml_table(path)
    if path.stem not in REGISTRY:
        raise LessonFileError(f"{path.name} must have a module of its name in core/lesson/quantities.")
    lesson = lesson_from(table, path.stem)
    check_lesson(lesson)
    return lesson


def read_toml_table(path: Path) -> LessonTable:
    """A TOML file as a table to take values out of.

    Raises:
        LessonFileError: it is not TOML.
    """
    try:
        return LessonTable(tomllib.loads(path.read_text(encoding="utf-8")), path.name)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise LessonFileError(f"{path.name} must be TOML in UTF-8: {problem}.") from problem


def lesson_from(table: LessonTable, id: str) -> Lesson:
    """Build a lesson from the table of its file.

    Raises:
        LessonFileError: a part is missing or is another thing.
    """
    lesson = Lesson(
        id=id,
        part=table.whole("part", 1, 5),
        number=table.whole("number", 1, 99),
        title=table.text("title"),
        question=table.text("question"),
        answer=table.text("answer"),
        base=table.values("base"),
        recall=recall(table.inner("recall")) if table.has("recall") else None,
        prediction=prediction(table.inner("prediction")),
        pictures=pictures(table.inner("pictures")),
        controls=controls(table),
        worked=worked(table),
        measurement=measurement(table.inner("measurement")),
        because=choice(table.inner("because")),
        exercises=exercises(table, id),
        misconceptions=misconceptions(table),
        terms=terms(table),
        instructor=instructor(table.inner("instructor")),
        beside=beside(table),
    )
    table.finish()
    return lesson
