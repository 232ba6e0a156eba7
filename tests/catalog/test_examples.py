"""The examples in the catalogue's docstrings hold."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import core.catalog

MODULES = [found.name for found in pkgutil.walk_packages(core.catalog.__path__, "core.catalog.")]


def test_the_families_are_among_them() -> None:
    assert {"core.catalog.hf_config", "core.catalog.families.llama"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
