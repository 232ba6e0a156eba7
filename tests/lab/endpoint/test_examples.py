"""The examples in the docstrings of the measurement of servers hold."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["answer", "load", "prediction", "prompts", "request", "row", "sentences"])
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"core.lab.endpoint.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
