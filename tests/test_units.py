"""Numbers are written with three significant digits and the right prefix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012345, "0.0123"),
        (9.996, "10.0"),
        (1234.5, "1,230"),
        (-2.5, "-2.50"),
        (1e-9, "0.00000000100"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("num_bytes", "binary", "decimal"),
    [
        (0, "0 B", "0 B"),
        (16_060_522_496, "15.0 GiB", "16.1 GB"),
        (80 * units.GB, "74.5 GiB", "80.0 GB"),
        (1024**3 - 1, "1.00 GiB", "1.07 GB"),
    ],
)
def test_gib_and_gb_are_kept_apart(num_bytes: int, binary: str, decimal: str) -> None:
    assert units.format_gib(num_bytes) == binary
    assert units.format_gb(num_bytes) == decimal


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (75, "75.0 s"), (0.0098, "9.80 ms"), (2e-6, "2.00 µs"), (5e-10, "0.500 ns")],
)
def test_durations_pick_their_unit(seconds: float, text: str) -> None:
    assert units.format_seconds(seconds) == text


@given(st.floats(min_value=1e-12, max_value=1e24))
def test_what_is_written_is_within_half_a_percent(value: float) -> None:
    assert float(units.significant(value).replace(",", "")) == pytest.approx(value, rel=5.1e-3)


@given(st.integers(min_value=1, max_value=10**20))
def test_a_prefix_never_leaves_a_thousand(num_bytes: int) -> None:
    number = float(units.format_gb(num_bytes).split()[0].replace(",", ""))
    assert 1 <= number < 1000 or num_bytes >= 10**21
