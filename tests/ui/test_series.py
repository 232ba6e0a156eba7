"""Windows cover a run once; gaps are sorted, and what does not fit is summed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ui.series import MIXED, MOST_THINGS, Gap, largest_gaps, windows


@given(st.integers(1, 600))
def test_windows_cover_every_step_once_and_are_few(count: int) -> None:
    found = windows(np.linspace(1, 2, count))
    assert [step for window in found for step in range(window.first, window.last + 1)] == list(range(count))
    assert len(found) <= 16
    assert all(window.low <= window.median <= window.high for window in found)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_largest_gaps_come_first_and_nothing_is_lost(values: list[tuple[float, float]]) -> None:
    rows = [Gap(str(index), "weights", *pair) for index, pair in enumerate(values)]
    shown = largest_gaps(rows)
    assert len(shown) == min(len(rows), MOST_THINGS)
    named = [row.size_s for row in shown if row.part != MIXED]
    assert named == sorted(named, reverse=True)
    assert sum(row.predicted_s for row in shown) == pytest.approx(sum(row.predicted_s for row in rows))
    assert sum(row.measured_s or 0 for row in shown) == pytest.approx(
        sum(row.measured_s or 0 for row in rows)
    )


def test_before_a_run_the_longest_operators_come_first() -> None:
    rows = [Gap("short", "weights", 1.0), Gap("long", "weights", 2.0)]
    assert [row.name for row in largest_gaps(rows)] == ["long", "short"]
    assert rows[0].ratio is None


def test_a_sum_with_something_unmeasured_is_unmeasured() -> None:
    rows = [Gap(str(index), "weights", 1.0, None if index == 9 else 3.0) for index in range(10)]
    assert largest_gaps(rows)[-1].measured_s is None


def test_nothing_predicted_has_no_ratio() -> None:
    assert Gap("free", "weights", 0.0, 1.0).ratio is None
