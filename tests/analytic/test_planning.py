"""A plan says what it knows, what cannot work, and what it does not compute."""

from typing import Any

import pytest

from core.analytic.datasheet import machine_from
from core.analytic.plan import Plan, plan
from core.catalog.accelerators import accelerator
from core.catalog.models import model
from core.catalog.scenario import Scenario
from core.errors import FormatError, ScenarioError


def made(**change: Any) -> Plan:
    scenario = Scenario(**change)
    return plan(scenario, model(scenario.model), machine_from(accelerator(scenario.accelerator)))


def test_the_default_scenario_fits_and_waits_for_memory() -> None:
    found = made()
    assert found.fits is True
    assert found.violations == ()
    assert found.prefill is not None
    assert found.decode is not None
    assert (found.prefill.limit, found.decode.limit) == ("compute", "memory")
    assert found.ttft_s == found.prefill.time_s
    assert found.decode.time_s == pytest.approx(found.tpot_s, rel=1e-3)


def test_too_large_a_model_is_a_violation_and_still_counted() -> None:
    found = made(model="llama-3.3-70b")
    assert found.fits is False
    assert "must fit into the 79.6 GiB of NVIDIA H100" in found.violations[0]
    assert found.tpot_s is not None


def test_a_context_past_the_models_own_is_a_violation_and_still_counted() -> None:
    found = made(model="llama-2-7b", input_tokens=4096)
    assert "within the 4,096 tokens that Llama 2 7B was made for; they are 4,352" in found.violations[0]
    assert found.ttft_s is not None


def test_an_unsupported_format_gives_no_time() -> None:
    found = made(accelerator="t4", model="smollm2-135m")
    assert "NVIDIA T4 has no bf16 arithmetic. Choose one of fp32, fp16" in found.violations[0]
    assert found.prefill is not None
    assert found.prefill.flops > 0
    assert (found.prefill.time_s, found.ttft_s, found.tpot_s) == (None, None, None)


def test_an_unknown_capacity_is_no_verdict() -> None:
    found = made(accelerator="rtx-4080")
    assert found.fits is None
    assert "is unknown, so is whether this fits" in found.notes[-1]
    assert found.tpot_s is not None


@pytest.mark.parametrize("degree", ["tp", "pp", "ep"])
def test_a_split_model_is_no_plan_of_one_chip(degree: str) -> None:
    with pytest.raises(ScenarioError, match="Call plan_on_chips for a model that is split"):
        made(**{degree: 2})


def test_several_chips_are_replicas() -> None:
    assert made(count=3).tpot_s == made().tpot_s
    assert any("3 chips without a split are independent replicas" in note for note in made(count=3).notes)


def test_a_single_token_has_no_tpot() -> None:
    found = made(output_tokens=1)
    assert (found.tpot_s, found.tokens_per_s) == (None, None)
    assert found.end_to_end_s == found.ttft_s


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(FormatError, match="A format for weights must be one of"):
        made(weights="int3")
