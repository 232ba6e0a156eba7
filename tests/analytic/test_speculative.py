"""Drafted tokens: the formula against the process that it describes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.speculative import (
    acceptance_rate,
    best_length,
    break_even_acceptance,
    expected_tokens,
    round_cost,
    speedup,
)
from core.errors import ScenarioError


@given(st.floats(0, 1), st.integers(0, 12))
def test_expected_tokens_are_those_of_accepting_one_after_another(rate: float, drafted: int) -> None:
    by_hand = sum(rate**accepted for accepted in range(drafted + 1))
    assert float(expected_tokens(rate, drafted)) == pytest.approx(by_hand)


@given(st.floats(0, 1), st.integers(0, 12), st.floats(0, 1))
def test_a_free_draft_never_hurts_and_a_dear_one_may(rate: float, drafted: int, cost: float) -> None:
    assert float(speedup(rate, drafted, 0.0)) >= 1 - 1e-12
    assert float(speedup(rate, drafted, cost)) <= float(speedup(rate, drafted, 0.0))
    assert float(speedup(0.0, 0, cost)) == 1


def test_known_values() -> None:
    """Five guesses, half of them right, by a draft that costs a quarter: slower than not to guess."""
    assert float(speedup(0.5, 5, 0.25)) == pytest.approx(1.96875 / 2.25)
    assert float(expected_tokens(0.7, 5)) == pytest.approx(2.941, abs=5e-4)


@given(st.floats(0, 0.999), st.integers(1, 12), st.floats(0, 1), st.floats(1, 3))
def test_from_the_break_even_on_guessing_pays(rate: float, drafted: int, cost: float, verify: float) -> None:
    edge = break_even_acceptance(drafted, cost, verify)
    gain = float(speedup(rate, drafted, cost, verify))
    if edge is None:
        assert gain < 1
        return
    assert gain >= 1 - 1e-9 if rate >= edge else gain <= 1 + 1e-9
    if edge > 0:
        assert float(expected_tokens(edge, drafted)) == pytest.approx(
            float(round_cost(drafted, cost, verify))
        )


@given(st.floats(0, 1), st.floats(0, 1), st.lists(st.floats(1, 9), max_size=12))
def test_the_best_length_is_not_beaten(rate: float, cost: float, dearer: list[float]) -> None:
    costs = [1.0, *dearer]
    best = best_length(rate, cost, costs)
    gains = [float(speedup(rate, length, cost, verify)) for length, verify in enumerate(costs)]
    assert gains[best] == max(gains)
    assert gains[best] >= 1


def test_a_check_that_takes_longer_eats_the_gain() -> None:
    assert float(speedup(0.7, 5, 0.0, 2.0)) == pytest.approx(float(speedup(0.7, 5, 0.0)) / 2)
    assert best_length(0.9, 0.05, [1.0] * 17) > best_length(0.9, 0.05, [1 + k for k in range(17)]) == 0


def test_acceptance_counts_only_what_was_looked_at() -> None:
    assert acceptance_rate([5, 5, 5], [0, 5, 2]) == pytest.approx(7 / 9)
    assert acceptance_rate([3, 0], [3, 0]) == 1
    assert acceptance_rate([], []) is None


def test_a_sweep_is_one_call() -> None:
    found = speedup(np.array([0.2, 1.0]), np.array([[1], [4]]), 0.1)
    assert found.shape == (2, 2)
    assert found[1, 1] == pytest.approx(5 / 1.4)


@pytest.mark.parametrize(
    ("rate", "drafted", "cost", "message"),
    [
        (1.2, 3, 0.1, "must be from 0 to 1; got 1.2"),
        (float("nan"), 3, 0.1, "must be from 0 to 1; got nan"),
        (0.5, -1, 0.1, "must be 0 or more; got -1"),
        (0.5, 3, -0.1, "must be 0 or more; got -0.1"),
    ],
)
def test_impossible_values_are_sentences(rate: float, drafted: int, cost: float, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        speedup(rate, drafted, cost)


def test_a_check_for_nothing_is_refused() -> None:
    with pytest.raises(ScenarioError, match="check must be more than 0; got 0"):
        speedup(0.5, 3, 0.1, 0)
