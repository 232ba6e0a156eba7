"""The course map: five parts, their pages in order, the tools, and how far a learner is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from core.catalog.assets import FOLDER
from core.lesson.lesson_file import lessons, read_toml_table
from core.lesson.lesson_table import LessonFileError, LessonTable
from core.lesson.notebook import LessonProgress, Notebook

_FILE: Final = FOLDER / "course.toml"


@dataclass(frozen=True, slots=True)
class CoursePage:
    """A page of the course: ``stem`` is its file and its address; ``exists`` is false while it is coming."""

    number: int
    part: int
    stem: str
    title: str
    question: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Tool:
    """A page beside the course."""

    stem: str
    title: str
    question: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A part and its pages, in order."""

    number: int
    title: str
    pages: tuple[CoursePage, ...]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The pages before and after one, among those that exist; None at an end."""

    previous: CoursePage | None
    next: CoursePage | None


@dataclass(frozen=True, slots=True)
class CourseProgress:
    """How many pages are done, of how many there are and will be.

    Attributes:
        by_page: the progress of each page that exists, by stem.
    """

    done: int
    existing: int
    planned: int
    by_page: dict[str, LessonProgress]

    @property
    def sentence(self) -> str:
        """For the map."""
        coming = self.planned - self.existing
        rest = f"; {coming} more are coming" if coming else ""
        return f"{self.done} of {self.existing} pages done{rest}."


@dataclass(frozen=True, slots=True)
class Course:
    """All parts and tools."""

    parts: tuple[Part, ...]
    tools: tuple[Tool, ...]

    @property
    def pages(self) -> tuple[CoursePage, ...]:
        """Every page, in order."""
        return tuple(page for part in self.parts for page in part.pages)

    @property
    def existing(self) -> tuple[CoursePage, ...]:
        """The pages that can be opened, in order."""
        return tuple(page for page in self.pages if page.exists)

    def page(self, stem: str) -> CoursePage | None:
        """A page by its stem."""
        return next((page for page in self.pages if page.stem == stem), None)

    def neighbours(self, stem: str) -> Neighbours:
        """What comes before and after a page that exists; nothing does for another name."""
        return _around(self.existing, stem)

    def progress(self, notebook: Notebook) -> CourseProgress:
        """How far a learner is."""
        known = lessons()
        by_page = {page.stem: notebook.progress(known[page.stem]) for page in self.existing}
        done = sum(progress.done for progress in by_page.values())
        return CourseProgress(done, len(by_page), len(self.pages), by_page)


def _around(pages: Sequence[CoursePage], stem: str) -> Neighbours:
    stems = [page.stem for page in pages]
    if stem not in stems:
        return Neighbours(None, None)
    here = stems.index(stem)
    return Neighbours(
        previous=pages[here - 1] if here else None,
        next=pages[here + 1] if here + 1 < len(pages) else None,
    )


@cache
def course() -> Course:
    """The course of ``assets/course.toml``.

    Raises:
        LessonFileError: the file does not hold one.

    >>> [page.stem for page in course().pages][:2]
    ['one_token', 'prefill_and_decode']
    """
    return read_course(_FILE)


def read_course(path: Path) -> Course:
    """Read a course map, and hold it against the lessons.

    Raises:
        LessonFileError: a page is out of order, in no part, or exists without its lesson.
    """
    table = read_toml_table(path)
    pages = [_page(entry) for entry in table.tables("pages", 1, 99)]
    parts = tuple(_part(entry, pages) for entry in table.tables("parts", 1, 9))
    tools = tuple(_tool(entry) for entry in table.tables("tools", 0, 9))
    table.finish()
    found = Course(parts, tools)
    _check(found, pages)
    return found


def _page(table: LessonTable) -> CoursePage:
    page = CoursePage(
        number=table.whole("number", 1, 99),
        part=table.whole("part", 1, 9),
        stem=table.text("stem"),
        title=table.text("title"),
        question=table.text("question"),
        exists=table.flag("exists"),
    )
    table.finish()
    return page


def _part(table: LessonTable, pages: list[CoursePage]) -> Part:
    number = table.whole("number", 1, 9)
    part = Part(number, table.text("title"), tuple(page for page in pages if page.part == number))
    table.finish()
    return part


def _tool(table: LessonTable) -> Tool:
    tool = Tool(table.text("stem"), table.text("title"), table.text("question"), table.flag("exists"))
    table.finish()
    return tool


def _check(found: Course, pages: list[CoursePage]) -> None:
    if list(found.pages) != pages or [page.number for page in pages] != list(range(1, len(pages) + 1)):
        raise LessonFileError("course.toml must list its pages in order, each in one of the parts.")
    for page in found.existing:
        lesson = lessons().get(page.stem)
        if lesson is None:
            raise LessonFileError(f"course.toml must not say that {page.stem} exists: it has no lesson.")
        same = (lesson.part, lesson.number, lesson.title, lesson.question)
        if same != (page.part, page.number, page.title, page.question):
            raise LessonFileError(f"course.toml and {page.stem}.toml must agree on part, number and words.")
