"""The examples in the docstrings of prediction, cost and search are kept."""

import doctest
import importlib

import pytest

MODULES = (
    "core.analytic.cost",
    "core.analytic.efficiency",
    "core.analytic.plan_value",
    "core.analytic.prediction_range",
    "core.analytic.search.candidates",
    "core.analytic.search.ranking",
    "core.analytic.setting",
    "core.analytic.validation.names",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
