"""The picture of the time between tokens: each gap is counted once, and the marks stand where they say."""

import re

import numpy as np
import pytest

from core.ui.figures.token_gaps import Gaps, token_gaps
from tests.ui.drawn import drawn_inside

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize("predicted_s", [None, 0.001, 0.5])
def test_every_level_is_drawn_inside(count: int, predicted_s: float | None) -> None:
    levels = [Gaps(2**n, RNG.gamma(2.0, 0.01 * (n + 1), 200), predicted_s) for n in range(count)]
    found = token_gaps(levels)
    markup = drawn_inside(found)
    assert len(found.rows) == count
    assert all(f">{level.concurrency} at once<" in markup for level in levels)
    counts = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) gaps from", markup)]
    assert sum(counts) == 200 * count


def test_equal_and_zero_gaps_can_be_drawn() -> None:
    for seconds in (np.zeros(5), np.full(3, 0.02), np.array([0.02])):
        drawn_inside(token_gaps([Gaps(1, seconds)]))


def test_what_lies_beyond_the_axis_is_said() -> None:
    found = token_gaps([Gaps(1, np.array([*np.full(999, 0.01), 5.0]))])
    assert "1 of 1,000 gaps are longer than the axis" in found.look_at


def test_the_table_has_the_percentiles_and_the_prediction() -> None:
    found = token_gaps([Gaps(4, np.array([0.01, 0.02, 0.03]), 0.015)])
    assert found.rows[0] == pytest.approx((4, 3, 20.0, 28.0, 29.8, 30.0, 15.0))
    assert "at 4 at once the median is 20.0 ms" in found.alt
    assert "predicted 15.0 ms" in found.alt
