"""A range holds the prediction, widens outside the data, and says why."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.analytic.prediction_range import (
    COVERED,
    KINDS_SEEN,
    Conditions,
    half_width,
    half_widths,
    outside,
    prediction_range,
    regime,
    regime_of_run,
)
from core.analytic.validation.runs import published_runs

USUAL = Conditions("hbm")


def test_every_regime_has_a_width() -> None:
    assert set(half_widths()) == set(COVERED)
    assert all(0.1 < width < 1 for width in half_widths().values())


def test_the_range_is_even_in_the_logarithm() -> None:
    found = prediction_range(0.02, USUAL)
    assert found.reasons == ()
    assert found.low_s * found.high_s == pytest.approx(0.02**2)
    assert math.log(found.high_s / 0.02) == pytest.approx(half_widths()["decode_single"])
    assert prediction_range(0.02, USUAL, prefill=True).high_s > found.high_s


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "other"}, "no published measurement is of such an accelerator"),
        ({"announced": True}, "announced"),
        ({"batch": 4096.0}, "batch is above 2,048"),
        ({"context": 100_000.0}, "context is above 32,768"),
        ({"chips": 16}, "more than 8 chips"),
        ({"pipeline": 2}, "stages"),
        ({"format_class": "fp4"}, "4-bit products"),
        ({"experts": True}, "mixture of experts"),
        ({"state": True}, "state"),
    ],
)
def test_outside_of_the_data_it_says_so_and_widens(change: dict[str, object], word: str) -> None:
    at = replace(USUAL, **change)  # type: ignore[arg-type]
    (reason,) = outside(at, regime(at))
    assert word in reason
    width = half_widths()[regime(at)]
    assert math.log(prediction_range(1.0, at).high_s) == pytest.approx(1.5 * width)


def test_classes_of_chips_that_were_seen_are_those_of_the_data() -> None:
    runs = published_runs().runs
    for name in COVERED:
        assert {run.chip.kind for run in runs if regime_of_run(run) == name} == set(KINDS_SEEN[name])


def test_a_prompt_on_a_chip_whose_prompts_nobody_timed() -> None:
    assert prediction_range(1.0, Conditions("cpu"), prefill=True).reasons == (
        "no published measurement of a prompt's time is of such a chip",
    )
    assert prediction_range(1.0, Conditions("cpu")).reasons == ()


def test_two_reasons_widen_twice() -> None:
    one, two = (
        prediction_range(1.0, replace(USUAL, announced=True, pipeline=stages)).high_s for stages in (1, 2)
    )
    assert two > one


def test_regimes() -> None:
    assert regime(USUAL) == "decode_single"
    assert regime(replace(USUAL, chips=2)) == "decode_parallel"
    assert regime(replace(USUAL, batch=2.0, chips=2)) == "decode_batch"
    assert regime(Conditions("cpu")) == "processor"
    assert regime(Conditions("cpu"), prefill=True) == "prefill"


def test_a_regime_of_few_rows_is_never_narrower_than_all() -> None:
    everything = np.linspace(-0.5, 0.5, 101)
    assert half_width(np.array([0.01, -0.02]), everything) == pytest.approx(0.42, abs=0.01)
    assert half_width(np.array([2.0, -2.0]), everything) == pytest.approx(2.0)
    assert half_width(np.full(20, 0.1), everything) == pytest.approx(0.1)
    assert half_width(np.array([]), everything) > 0
