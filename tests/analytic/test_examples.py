"""The examples in docstrings are promises; here they are kept."""

import doctest
import importlib

import pytest

MODULES = [
    "core.units",
    *(f"core.catalog.{name}" for name in ("formats", "scenario", "hf_config", "models", "accelerators")),
    *(
        f"core.analytic.{name}"
        for name in (
            "table", "params", "kv_cache", "pairs", "operators",
            "latency", "roofline", "memory", "datasheet", "plan",
            "collectives", "communication", "experts", "parallel", "deployment", "split_rules", "constraints",
            "plan_on_chips", "kv_regimes", "speculative", "rounding", "served",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
