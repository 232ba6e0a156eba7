"""Times of single operators: what a pass takes, and which of its layers give a sample."""

import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lab.pace import Pace
from core.lab.worker.calibration_model import calibration_engine, calibration_spec
from core.lab.worker.operator_clock import Care, OperatorClock, PassShape, typical

pytestmark = pytest.mark.torch

PACE = Pace(10e9, 2e-3)
seconds = st.floats(1e-6, 1.0)


@given(st.lists(st.tuples(seconds, seconds, seconds), min_size=1, max_size=9))
def test_operators_together_take_what_a_pass_takes(passes: list[tuple[float, ...]]) -> None:
    assert sum(typical(passes)) == pytest.approx(statistics.median(sum(one) for one in passes))


def test_passes_that_agree_are_what_they_are() -> None:
    assert typical([[0.1, 0.2], [0.1, 0.2]]) == pytest.approx([0.1, 0.2])


def test_a_single_hiccup_is_no_habit() -> None:
    assert typical([*[[0.1, 0.2]] * 5, [0.1, 60.0]]) == pytest.approx([0.1, 0.2])


def test_what_happens_to_another_operator_in_every_pass_counts() -> None:
    passes = [[0.1, 0.1, 0.4], [0.1, 0.4, 0.1], [0.4, 0.1, 0.1]]
    assert typical(passes) == pytest.approx([0.2, 0.2, 0.2])


@pytest.mark.parametrize(("layers", "warming", "sampled"), [(3, 1, 2), (2, 0, 2), (4, 2, 2)])
def test_layers_at_the_start_give_no_sample(layers: int, warming: int, sampled: int) -> None:
    engine = calibration_engine(calibration_spec(2), "fp32", "fp32", "cpu")
    clock = OperatorClock(engine, range(layers), Care(warming=warming))
    found = Counter(sample.operator for sample in clock.samples(PassShape(2, 2), 2, PACE))
    assert {found[name] for name in ("attention_norm", "qkv", "gate_up", "down")} == {sampled}
    assert found["embedding"] == 1
    assert "lm_head" not in found, "of many tokens only the last has logits"
