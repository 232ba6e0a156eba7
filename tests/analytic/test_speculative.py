"""Drafted tokens: the formula against the process that it describes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.speculative import expected_tokens, speedup
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
