"""The FLOPs that page 1 shows as counted are what PyTorch counts, and what the operator table says."""

import doctest

import pytest

from core.analytic.operators import operators
from core.catalog.models import model
from core.lesson import flop_count as module
from core.lesson.flop_count import flop_count
from core.lesson.measures import MEASURES
from tests.lab import examples


def test_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_the_kept_count_is_the_tables_to_the_last_flop() -> None:
    kept = flop_count()
    table = operators(
        model(kept.model), batch=1, new_tokens=1, context=kept.context, weights="fp32", kv="fp32"
    )
    flops = {name: float(value) for name, value in table.by_name(table.flops).items() if value > 0}
    assert flops == kept.flops
    row = MEASURES["counted_flops"][0]([examples.record()])
    assert row is not None
    assert row.ratio == 1
    assert row.measured.text == "273 MFLOP"


@pytest.mark.torch
def test_pytorch_counts_the_same_today(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.engine.native import attention  # noqa: PLC0415 - only this test may import torch
    from tests.engine.test_counts import counted_flops  # noqa: PLC0415

    monkeypatch.setattr(attention, "kernels", lambda: None)  # torch counts its own kernels only
    kept = flop_count()
    counted = counted_flops(model(kept.model), 1, kept.context)
    assert {name: flops for name, flops in counted.items() if flops} == kept.flops
