"""A fit finds what made the data, and leaves alone what no data inform."""

from dataclasses import replace

import numpy as np
import pytest

from core.analytic.validation.fitting import design, fit
from core.analytic.validation.runs import published_runs
from core.analytic.validation.workload import Workload, workload

NOISE = 0.02


@pytest.fixture(scope="module")
def loads() -> list[Workload]:
    return [workload(run) for run in published_runs().runs[::3]]


def test_what_made_the_data_is_found_again(loads: list[Workload]) -> None:
    of, random = design(loads), np.random.default_rng(1)
    truth = of.centres + 0.7 * of.spreads * random.standard_normal(len(of.names))
    made = of.predict(truth) + NOISE * random.standard_normal(len(loads))
    fitted = fit(replace(of, observed=made), np.ones(len(loads), bool))
    start = np.abs(of.predict(of.centres) - made)
    left = np.abs(of.predict(fitted) - made)
    assert np.median(left) < 0.5 * np.median(start)
    assert np.median(left) < 2 * NOISE


def test_rows_that_are_left_out_do_not_matter(loads: list[Workload]) -> None:
    of = design(loads)
    used = of.sources != 0
    spoilt = np.where(used, of.observed, 99.0)
    assert fit(replace(of, observed=spoilt), used) == pytest.approx(fit(of, used))


def test_an_effect_without_rows_stays_at_its_centre(loads: list[Workload]) -> None:
    of = design(loads)
    processors = np.array([load.run.chip.kind == "cpu" for load in loads])
    assert processors.any()
    fitted = fit(of, ~processors)
    index = of.names.index("weight_bandwidth|chip:cpu")
    assert fitted[index] == of.centres[index]


def test_one_table_cannot_outvote_the_others(loads: list[Workload]) -> None:
    """A source copied four times counts no more than once."""
    of = design(loads)
    largest = [
        load
        for load, source in zip(loads, of.sources, strict=True)
        if source == np.bincount(of.sources).argmax()
    ]
    again = design([*loads, *largest * 3])
    once, more = fit(of, np.ones(len(loads), bool)), fit(again, np.ones(len(again.loads), bool))
    assert again.names == of.names
    assert np.abs(of.predict(once) - of.predict(more)).max() < 0.05


def test_global_terms_are_the_same_for_all(loads: list[Workload]) -> None:
    of = design(loads, alone=True)
    assert len(of.names) == len(of.weights)
    assert all((weights.sum(axis=1) == 1).all() for weights in of.weights.values())
