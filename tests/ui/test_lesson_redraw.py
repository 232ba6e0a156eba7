"""The Python that a lesson's picture offers draws the very same picture, before and after the prediction."""

import pytest

from core.lesson.lesson import Lesson
from core.lesson.lesson_file import lessons
from core.ui.export import to_csv
from core.ui.lesson.scenes import PICTURES, Scene
from core.ui.picture import Picture
from core.ui.redraw import program

CASES = [(lesson, answered) for lesson in lessons().values() for answered in (False, True)]


def drawn(lesson: Lesson, *, answered: bool) -> list[Picture]:
    base = lesson.base_case
    case = lesson.page_case(base.scenario, base.model, base.machine, {})
    scene = Scene(lesson, case, None, answered=answered)
    names = (lesson.pictures.base, lesson.pictures.answer) if answered else (lesson.pictures.base,)
    return [PICTURES[name](scene) for name in names]


@pytest.mark.parametrize(
    ("lesson", "answered"), CASES, ids=lambda value: getattr(value, "id", f"answered={value}")
)
def test_the_program_makes_the_same_picture(
    lesson: Lesson, answered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for picture in drawn(lesson, answered=answered):
        assert picture.call is not None
        space: dict[str, Picture] = {}
        exec(program(picture.call), space)  # noqa: S102 - the program that the page offers
        assert capsys.readouterr().out == to_csv(picture.columns, picture.rows)
        assert space["picture"].markup() == picture.markup()


@pytest.mark.parametrize("lesson", lessons().values(), ids=lambda lesson: lesson.id)
def test_every_row_has_a_cell_for_each_column(lesson: Lesson) -> None:
    for picture in drawn(lesson, answered=True):
        assert picture.rows
        assert all(len(row) == len(picture.columns) for row in picture.rows)
        assert len(picture.alt) > 40
