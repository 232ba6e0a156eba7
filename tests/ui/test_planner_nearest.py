"""Plans offered in place of one that does not work: each works, and the scenario can hold it."""

import doctest

import pytest

from core.catalog.scenario import Scenario
from core.ui.planner import nearest
from core.ui.planner.nearest import applied, offered
from tests.ui.test_planner_arithmetic import found_for

BROKEN = [
    Scenario(model="llama-3.3-70b", count=3, tp=3),  # does not divide
    Scenario(tp=2),  # more chips than there are
    Scenario(model="llama-3.3-70b", count=2, tp=2, weights="fp32"),  # does not fit
    Scenario(model="llama-3.3-70b", accelerator="a100-sxm-80gb"),  # does not fit on one chip
    Scenario(model="qwen3-30b-a3b", count=4, tp=4, ep=3),  # experts do not divide
]


@pytest.mark.parametrize("scenario", BROKEN)
def test_each_plan_that_is_offered_works(scenario: Scenario) -> None:
    before = found_for(scenario)
    assert before.plan.violations
    assert offered(before)
    for plan in offered(before):
        after = found_for(applied(scenario, plan))
        assert after.plan.violations == ()
        assert after.plan.fits is True
        assert after.case.parallel == plan


@pytest.mark.parametrize("scenario", [Scenario(), Scenario(model="llama-3.3-70b", count=4, tp=4)])
def test_a_plan_that_works_needs_no_other(scenario: Scenario) -> None:
    assert offered(found_for(scenario)) == ()


def test_a_format_that_the_chip_lacks_is_not_helped_by_another_split() -> None:
    assert offered(found_for(Scenario(accelerator="a100-sxm-80gb", weights="fp8", count=2, tp=2))) == ()


def test_examples_hold() -> None:
    found = doctest.testmod(nearest)
    assert (found.attempted > 0, found.failed) == (True, 0)
