"""Each picture tells its takeaway in words, and draws predicted and measured differently."""

import numpy as np
import pytest

from core.ui.figures.operator_times import operator_times
from core.ui.figures.step_times import RECOMPUTED, step_times
from core.ui.picture import Picture
from core.ui.series import Gap
from core.ui.table import Blank

PREDICTED = np.linspace(0.010, 0.012, 20)


def test_without_a_cache_the_slope_has_another_reason() -> None:
    assert "it looks back at more tokens" in step_times(PREDICTED * np.linspace(1, 2, len(PREDICTED))).look_at
    slope = step_times(PREDICTED * np.linspace(1, 2, len(PREDICTED)), growth_reason=RECOMPUTED).look_at
    assert slope.endswith("every token so far goes through the model again.")


def test_before_a_run_the_steps_are_a_dashed_line_only() -> None:
    picture = step_times(PREDICTED)
    assert "outline line-ink" in picture.drawing.markup()
    assert "fill-decode" not in picture.drawing.markup()
    assert picture.alt == (
        "Predicted time per token: 10.0 ms to 12.0 ms over 20 tokens. Nothing is measured yet."
    )


def test_measured_steps_are_filled_with_a_band_and_hovers() -> None:
    picture = step_times(PREDICTED, PREDICTED * 1.1)
    markup = picture.drawing.markup()
    assert markup.count("<circle") == 20
    assert "band fill-decode" in markup
    assert "token 2: measured 11.0 ms" in markup
    assert "measured median 12.1 ms" in picture.alt
    assert picture.rows[0] == (2, pytest.approx(10.0), pytest.approx(11.0))


def test_an_answer_that_ended_early_leaves_the_rest_unmeasured() -> None:
    rows = step_times(PREDICTED, PREDICTED[:5]).rows
    assert len(rows) == 20
    assert rows[5][2] is Blank.DOES_NOT_APPLY


def test_steps_far_above_the_rest_are_said() -> None:
    measured = np.full(40, 0.010)
    measured[7] = 0.5
    assert step_times(np.full(40, 0.010), measured).look_at.startswith("1 of 40 steps took longer")


@pytest.mark.parametrize("count", [0, 1, 2, 511])
def test_any_length_can_be_drawn(count: int) -> None:
    values = np.full(count, 0.01)
    for picture in (step_times(values), step_times(values, values)):
        assert picture.alt
        assert "nan" not in picture.drawing.markup()


def gaps(measured: bool) -> list[Gap]:
    return [
        Gap(f"operator_{index}", "weights", 0.001 * (index + 1), *((0.002, 0.001, 0.003) if measured else ()))
        for index in range(12)
    ]


def test_operators_are_at_most_seven_and_the_table_has_them_all() -> None:
    picture = operator_times(gaps(measured=True), "decode")
    assert picture.drawing.markup().count("outline line-ink") == 7 + 1  # and one in the key
    assert "6 others" in picture.drawing.markup()
    assert len(picture.rows) == 12
    assert picture.alt.startswith("Decode time by operator; the largest gap is operator 11")


def test_operators_before_a_run_are_outlines_only() -> None:
    picture = operator_times(gaps(measured=False), "prefill")
    assert "fill-weights" not in picture.drawing.markup()
    assert picture.alt.startswith("Predicted prefill time by operator; the longest is operator 11")


def test_no_operators_is_not_an_error() -> None:
    assert operator_times([], "decode").alt == "There are no operators to show."


@pytest.mark.parametrize(
    "picture", [step_times(PREDICTED, PREDICTED), operator_times(gaps(measured=True), "decode")]
)
def test_a_table_has_a_cell_for_every_column(picture: Picture) -> None:
    assert all(len(row) == len(picture.columns) for row in picture.rows)


def test_operators_can_stand_in_the_order_in_which_they_run() -> None:
    by_gap, by_run = (
        operator_times(gaps(measured=True), "decode"),
        operator_times(gaps(True), "decode", "run"),
    )
    assert [row[0] for row in by_run.rows] == [f"operator {index}" for index in range(12)]
    assert by_gap.rows[0][0] == "operator 11"
    assert sorted(map(str, by_gap.rows)) == sorted(map(str, by_run.rows))
    markup = by_run.drawing.markup()
    assert markup.index("operator 9") < markup.index("operator 11") < markup.index("6 others")


def test_the_table_says_what_each_operator_adds_to_the_gap() -> None:
    rows = [Gap("a", "kv", 0.001, 0.004, 0.004, 0.004), Gap("b", "kv", 0.002, 0.001, 0.001, 0.001)]
    picture = operator_times(rows, "decode")
    assert picture.columns[-2:] == ("gap ms", "share of the gap")
    assert [row[-2:] for row in picture.rows] == [(3.0, "150%"), (-1.0, "-50%")]
    assert operator_times([Gap("a", "kv", 0.001)], "decode").rows[0][-1] is Blank.NOT_YET
