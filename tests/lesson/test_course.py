"""The course map: 24 pages in order, neighbours among those that exist, progress from the notebook."""

import doctest
import re
from itertools import pairwise
from pathlib import Path

import pytest

from core.lesson import course as course_module
from core.lesson.course import Neighbours, course, read_course
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.lesson_table import LessonFileError
from core.lesson.notebook import Notebook

TEXT = (Path(__file__).parents[2] / "assets" / "course.toml").read_text(encoding="utf-8")


def test_examples_hold() -> None:
    assert doctest.testmod(course_module).failed == 0


def test_five_parts_and_twenty_four_pages() -> None:
    found = course()
    assert [part.number for part in found.parts] == [1, 2, 3, 4, 5]
    assert [page.number for page in found.pages] == list(range(1, 25))
    assert [len(part.pages) for part in found.parts] == [5, 5, 3, 5, 6]
    stems = [page.stem for page in found.pages] + [tool.stem for tool in found.tools]
    assert len(set(stems)) == len(stems)


def test_what_exists_is_what_has_a_lesson() -> None:
    assert [page.stem for page in course().existing] == list(lessons())


def test_neighbours_are_among_those_that_exist() -> None:
    pages = course().existing
    for before, after in pairwise(pages):
        assert course().neighbours(before.stem).next == after
        assert course().neighbours(after.stem).previous == before
    assert course().neighbours(pages[0].stem).previous is None
    assert course().neighbours(pages[-1].stem).next is None
    coming = next(page for page in course().pages if not page.exists)
    assert course().neighbours(coming.stem) == Neighbours(None, None)


def test_recall_is_from_an_earlier_page_that_exists() -> None:
    stems = [page.stem for page in course().existing]
    for lesson in lessons().values():
        if lesson.recall:
            assert lesson.recall.lesson in stems[: stems.index(lesson.id)]


def test_progress_counts_pages_whose_exercises_are_solved() -> None:
    lesson = lessons()["kv_cache"]
    instance = draw(lesson, lesson.exercises[0], 0)
    right = repr(instance.answer.value)
    notebook = Notebook().with_attempt(instance, right, instance.check(right))
    known = len(lessons())
    assert course().progress(Notebook()).sentence == f"0 of {known} pages done; {24 - known} more are coming."
    progress = course().progress(notebook)
    assert (progress.done, progress.existing, progress.planned) == (1, known, 24)
    assert progress.by_page["kv_cache"].done
    assert not progress.by_page["prefill_and_decode"].begun


def test_a_page_by_its_stem() -> None:
    page = course().page("kv_cache")
    assert page is not None
    assert page.number == 6
    assert course().page("nothing") is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("number = 3\npart = 1", "number = 4\npart = 1", "must list its pages in order"),
        ("number = 3\npart = 1", "number = 3\npart = 8", "must list its pages in order"),
        (
            'question = "What do you choose for this workload, and what would change your mind?"',
            'question = "Which?"\nexists = true',
            "it has no lesson",
        ),
        ('title = "KV cache"', 'title = "Cache"', "must agree on part, number and words"),
        ('title = "Roofline"', "", "a value at 'title'"),
    ],
)
def test_a_map_that_does_not_hold_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert old in TEXT
    path = tmp_path / "course.toml"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(LessonFileError, match=re.escape(sentence)):
        read_course(path)
