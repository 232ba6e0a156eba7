"""What was measured while the cores changed their speed is measured again, and never for ever."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lab.worker.steadiness import NEAR, Steadiness, near, repeated

USUAL, SLOW = 2.2e-3, 2.8e-3


def checks(*found_s: float) -> Callable[[], float]:
    left = iter(found_s)
    return lambda: next(left)


def counted() -> Iterator[int]:
    yield from range(1000)


def for_ever(_: int) -> bool:
    return True


def test_a_repeat_beside_which_a_neighbour_came_or_went_is_made_again() -> None:
    items = counted()
    steadiness = Steadiness(checks(USUAL, USUAL, SLOW, USUAL, USUAL), USUAL)
    found = repeated(lambda: next(items), 2, steadiness, for_ever)
    assert found.kept(2) == [0, 3]
    assert [item for item, _ in found.others] == [1, 2], "one ended slow, one began so"
    assert found.call_s(2) == USUAL
    assert USUAL < found.call_s(3) < SLOW
    assert found.kept(3) == [0, 3, 1, 2], "too few steady ones: all of them count"


def test_a_machine_that_stays_slow_is_measured_as_often_as_allowed() -> None:
    items = counted()
    found = repeated(lambda: next(items), 3, Steadiness(lambda: SLOW, USUAL), lambda made: made < 6)
    assert (found.steady, found.kept(1)) == ([], list(range(6)))
    assert found.call_s(1) == SLOW, "which its samples carry"


def test_nothing_is_checked_more_than_once_between_two_repeats() -> None:
    made = []
    repeated(lambda: made.append(1), 4, Steadiness(checks(*[USUAL] * 5), USUAL), for_ever)
    assert len(made) == 4


def test_what_is_usual_is_learned_where_nobody_says() -> None:
    steadiness = Steadiness(checks(SLOW, USUAL, USUAL, USUAL, SLOW), SLOW, learns=True)
    assert [steadiness.check().is_near for _ in range(5)] == [True, False, True, True, False]
    assert steadiness.usual_s == USUAL
    given_once = Steadiness(checks(SLOW), USUAL)
    assert not given_once.check().is_near
    assert given_once.usual_s == USUAL


@given(st.floats(1e-6, 1), st.floats(1, 2))
def test_near_is_the_same_both_ways(one: float, factor: float) -> None:
    assert near(one, factor * one) == near(factor * one, one)
    if abs(factor - NEAR) > 1e-6:
        assert near(one, factor * one) == (factor < NEAR)


@pytest.mark.parametrize("wanted", [1, 5])
def test_a_quiet_machine_measures_no_more_than_was_asked_for(wanted: int) -> None:
    items = counted()
    found = repeated(lambda: next(items), wanted, Steadiness(lambda: USUAL, USUAL), for_ever)
    assert found.kept(1) == list(range(wanted))
