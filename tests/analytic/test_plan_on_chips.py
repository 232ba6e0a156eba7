"""A plan over chips says what it can of what is asked, and never a number that means nothing."""

from typing import Any

import pytest

from core.analytic.datasheet import machine_from
from core.analytic.plan import plan
from core.analytic.plan_on_chips import PlanOnChips, plan_on_chips
from core.catalog.accelerators import accelerator
from core.catalog.formats import FORMATS
from core.catalog.models import model
from core.catalog.scenario import Scenario


def made(**change: Any) -> PlanOnChips:
    scenario = Scenario(**change)
    return plan_on_chips(scenario, model(scenario.model), machine_from(accelerator(scenario.accelerator)))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v2-lite", "qwen3-30b-a3b", "jamba-1.5-mini"])
def test_one_chip_is_the_plan_of_one_chip(name: str) -> None:
    scenario = Scenario(name, "h200-sxm-141gb", batch=4)
    machine = machine_from(accelerator(scenario.accelerator))
    alone, found = (
        plan(scenario, model(name), machine),
        made(model=name, accelerator="h200-sxm-141gb", batch=4),
    )
    assert found.plan.ttft_s == pytest.approx(alone.ttft_s)
    assert found.plan.tpot_s == pytest.approx(alone.tpot_s)
    assert found.plan.memory is not None
    assert alone.memory is not None
    assert float(found.plan.memory.total_bytes) == pytest.approx(float(alone.memory.total_bytes))
    assert found.plan.decode is not None
    assert alone.decode is not None
    assert found.plan.decode.flops == pytest.approx(alone.decode.flops)
    assert found.plan.decode.bytes == pytest.approx(alone.decode.bytes)


def test_the_fullest_chip_stands_for_all() -> None:
    found = made(model="llama-3.3-70b", count=4, pp=4)
    each = [float(use.memory.total_bytes) for use in found.stages]
    assert found.plan.memory is not None
    assert float(found.plan.memory.total_bytes) == max(each)
    assert [use.layers for use in found.stages] == [20, 20, 20, 20]
    assert each[0] > each[1]


def test_a_plan_that_does_not_divide_has_no_numbers_and_others_instead() -> None:
    found = made(model="llama-3.3-70b", count=3, tp=3)
    assert (found.plan.memory, found.plan.ttft_s, found.plan.decode, found.stages) == (None, None, None, ())
    assert found.plan.violations
    assert found.nearest


def test_a_format_that_the_chip_lacks_leaves_the_memory() -> None:
    found = made(model="llama-3.3-70b", accelerator="a100-sxm-80gb", count=4, tp=4, weights="fp8")
    assert found.plan.fits is True
    assert found.plan.ttft_s is None
    assert found.stages[0].decode_s is None
    assert len(found.plan.violations) == 1


@pytest.mark.parametrize("weights", [one.id for one in FORMATS.values()])
def test_every_format_has_times_or_a_sentence(weights: str) -> None:
    found = made(model="mixtral-8x7b-v0.1", accelerator="tpu-v5p", count=8, tp=2, pp=2, weights=weights)
    assert (found.plan.ttft_s is None) <= bool(found.plan.violations)


def test_a_model_of_experts_over_many_chips() -> None:
    found = made(
        model="deepseek-v3",
        accelerator="h200-sxm-141gb",
        count=16,
        tp=8,
        ep=16,
        weights="fp8-block",
        batch=16,
    )
    assert found.parallel.dp == 2
    assert found.plan.violations == ()
    assert found.plan.fits is True
    memory = found.plan.memory
    assert memory is not None
    # 653 GB of experts in fp8 over 16 chips, the rest over 8 or whole.
    assert 40e9 < float(memory.weights_bytes) < 50e9
    assert found.stages[0].link_bytes is not None
    assert found.stages[0].link_bytes > 0
