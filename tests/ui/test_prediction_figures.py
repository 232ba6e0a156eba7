"""The picture of predictions against measurements: axes, marks, ranges, what answers to a click."""

import re

import pytest

from core.ui.export import to_csv
from core.ui.figures.measured_and_predicted import MOST_KINDS, ScatterPoint, measured_and_predicted
from core.ui.palette import MARKS
from core.ui.picture import Picture
from core.ui.redraw import program
from tests.ui.drawn import drawn_inside

KINDS = tuple(f"kind {number}" for number in range(MOST_KINDS))


def point(number: int, measured: float, off: float = 1.2, width: float = 1.5) -> ScatterPoint:
    predicted = measured * off
    kind = KINDS[number % len(KINDS)]
    return ScatterPoint(
        f"p{number}", f"run <{number}>", kind, measured, predicted, predicted / width, predicted * width
    )


MANY = [point(number, 10.0 ** (number % 7 - 2), 0.5 + number % 5 / 2) for number in range(60)]


@pytest.mark.parametrize(
    "points", [MANY, MANY[:1], [point(0, 3e-9), point(1, 8e11)], [point(0, 5.0, 1.0, 1.0)]]
)
@pytest.mark.parametrize("kinds", [KINDS, KINDS[:1]])
def test_everything_is_drawn_inside(points: list[ScatterPoint], kinds: tuple[str, ...]) -> None:
    drawn_inside(measured_and_predicted(points, kinds, "Times", "ms"))


def test_each_kind_has_a_colour_and_a_shape_of_its_own() -> None:
    markup = measured_and_predicted(MANY, KINDS, "Times", "ms").drawing.markup()
    assert len(MARKS) == MOST_KINDS
    shapes = set()
    for number in range(MOST_KINDS):
        marks, legend = re.findall(rf'<path d="([^"]*)" class="fill-mark-{number}"', markup)
        assert marks.count("M") == sum(each.kind == KINDS[number] for each in MANY)
        assert legend.count("M") == 1
        first = [tuple(map(float, place.split())) for place in legend.removeprefix("M").split("L")]
        left, top = min(x for x, _ in first), min(y for _, y in first)
        shapes.add(tuple((round(x - left, 1), round(y - top, 1)) for x, y in first))
    assert len(shapes) == MOST_KINDS


def test_a_mark_answers_to_the_pointer_and_the_chosen_one_is_ringed() -> None:
    picture = measured_and_predicted(MANY, KINDS, "Times", "ms", chosen="p7")
    markup = picture.drawing.markup()
    assert re.findall(r'data-pick="([^"]*)"', markup) == [each.id for each in MANY]
    assert "run &lt;7&gt;: measured" in markup
    assert markup.count("<circle") == 1


def test_its_words_and_its_table_say_the_same() -> None:
    picture = measured_and_predicted(MANY, KINDS, "Times", "ms")
    inside = sum(each.in_range for each in MANY)
    assert f"{inside} measurements lie in the range" in picture.alt
    assert [row[-1] for row in picture.rows].count("yes") == inside
    assert 0 < inside < len(MANY)
    assert len(to_csv(picture.columns, picture.rows).splitlines()) == len(MANY) + 1


def test_it_can_be_drawn_again() -> None:
    picture = measured_and_predicted(MANY[:3], KINDS, "Times", "ms")
    assert picture.call is not None
    names: dict[str, Picture] = {}
    exec(program(picture.call), names)  # noqa: S102 - our own program
    assert names["picture"].drawing.markup() == picture.drawing.markup()


def test_a_picture_of_every_published_row_is_small_enough_for_a_phone() -> None:
    many = [point(number, 1.0 + number) for number in range(360)]
    assert len(measured_and_predicted(many, KINDS, "Times", "ms").drawing.markup()) < 150_000
