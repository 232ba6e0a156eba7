"""The picture of cost against time: the front, its letters, the marks beside it, the limit."""

import doctest
import math
import re

import pytest

from core.ui.export import to_csv
from core.ui.figures import cost_against_time as module
from core.ui.figures.cost_against_time import CostPoint, cost_against_time, letters
from core.ui.picture import Picture
from core.ui.redraw import program
from tests.ui.drawn import drawn_inside

FRONT = [CostPoint(f"chip {n}", 0.1 * 1.5**n, 0.05 / 1.3**n) for n in range(12)]
BEATEN = [CostPoint("an <old> chip", 3.0, 0.04), CostPoint("another", 0.5, 0.049)]


def lettered(points: list[CostPoint]) -> list[CostPoint]:
    return [
        CostPoint(point.name, point.usd, point.tpot_s, letter)
        for point, letter in zip(points, letters(points), strict=True)
    ]


def test_examples_hold() -> None:
    assert doctest.testmod(module) == (0, 1)


@pytest.mark.parametrize("limit_s", [0.05, 0.06, 3600.0, math.inf])
@pytest.mark.parametrize("front", [FRONT[:1], FRONT[:2], FRONT, [CostPoint("one", 1e-6, 900.0)]])
@pytest.mark.parametrize("others", [[], BEATEN])
def test_everything_is_drawn_inside(front: list[CostPoint], others: list[CostPoint], limit_s: float) -> None:
    drawn_inside(cost_against_time(lettered(front), others, limit_s))


def test_the_front_is_a_line_of_dots_and_the_beaten_are_diamonds() -> None:
    picture = cost_against_time(lettered(FRONT), BEATEN, 0.05)
    markup = picture.drawing.markup()
    assert markup.count("<circle") == len(FRONT)
    line = re.search(r'<path d="M([^"]*)" class="solid line-ink"', markup)
    assert line is not None
    places = [tuple(map(float, place.split())) for place in line[1].split("L")]
    assert len(places) == len(FRONT)
    assert places == sorted(places, reverse=True)  # each step left is a step up
    assert markup.count('class="thin line-muted clear"') == len(BEATEN)
    assert "an &lt;old&gt; chip, $3.00, 40.0 ms a token" in markup
    assert [row[-1] for row in picture.rows] == ["yes"] * len(FRONT) + ["no"] * len(BEATEN)


def test_the_limit_is_a_line_where_it_is_near() -> None:
    near = cost_against_time(lettered(FRONT), [], 0.06).drawing.markup()
    assert "at most 60.0 ms" in near
    assert near.count('class="outline line-decode"') == 1
    for far_s in (1.0, math.inf):
        assert "at most" not in cost_against_time(lettered(FRONT), [], far_s).drawing.markup()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 12, 60])
def test_letters_run_from_the_cheapest_to_the_fastest_and_are_seven_at_most(count: int) -> None:
    points = [CostPoint("", 1.1**n, 1 / 1.1**n) for n in range(count)]
    given = [letter for letter in letters(points) if letter]
    assert given == list("ABCDEFG")[: len(given)]
    assert letters(points)[0] == "A"
    assert letters(points)[-1] != ""


def test_the_offered_program_draws_the_same_picture(capsys: pytest.CaptureFixture[str]) -> None:
    picture = cost_against_time(lettered(FRONT), BEATEN, math.inf)
    assert picture.call is not None
    space: dict[str, Picture] = {}
    exec(program(picture.call), space)  # noqa: S102 - the program that the page offers
    assert capsys.readouterr().out == to_csv(picture.columns, picture.rows)
    assert space["picture"].markup() == picture.markup()


def test_what_is_lettered_is_named_below_and_said_aloud() -> None:
    picture = cost_against_time(lettered(FRONT), BEATEN)
    named = [label.words for label in picture.legend]
    assert named[0] == "A chip 0"
    assert named[-2].endswith("chip 11")
    assert "beaten" in named[-1]
    assert "cheapest chip 0 at $0.100" in picture.alt
    assert "fastest chip 11" in picture.alt
    assert letters([]) == ()
