"""The examples in the docstrings of core.numerics hold."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["rounding", "quantise", "error", "outlier", "histogram"])
def test_examples_in_docstrings_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"core.numerics.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
