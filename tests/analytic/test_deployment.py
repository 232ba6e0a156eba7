"""Times on many chips: one chip as before, more chips never idle for nothing, pipelines add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analytic.answer import speed
from core.analytic.datasheet import machine_from
from core.analytic.deployment import Phase, pass_on_chips, speed_on_chips
from core.analytic.parallel import ParallelPlan
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue, model
from core.errors import ScenarioError
from tests.analytic.shapes import SHAPES

H100 = machine_from(accelerator("h100-sxm-80gb"))
LLAMA = model("llama-3.3-70b")
LOAD = {"input_tokens": 500, "output_tokens": 100}


@given(st.sampled_from([model("llama-3.1-8b"), model("qwen3-0.6b")]), st.integers(1, 64))
def test_one_chip_is_what_it_was(spec: ModelSpec, batch: int) -> None:
    here = speed_on_chips(spec, H100, ParallelPlan(), batch=batch, weights="bf16", kv="bf16", **LOAD)
    there = speed(spec, H100, batch=batch, weights="bf16", kv="bf16", **LOAD)
    assert here.ttft_s == pytest.approx(there.ttft_s)
    assert here.tpot_s == pytest.approx(there.tpot_s)


@settings(max_examples=40)
@given(
    st.sampled_from(list(SHAPES.values())),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 4),
    st.integers(1, 16),
    st.sampled_from(["prefill", "decode"]),
)
def test_no_stage_is_busy_longer_than_the_pass(
    spec: ModelSpec, tp: int, pp: int, batch: int, phase: Phase
) -> None:
    new = 8 if phase == "prefill" else 1
    found = pass_on_chips(
        spec,
        H100,
        ParallelPlan(tp=tp, pp=pp),
        phase,
        batch=batch,
        new_tokens=new,
        context=8,
        weights="bf16",
        kv="bf16",
    )
    assert found.micro_batches == min(pp, batch)
    assert (found.idle_share >= -1e-12).all()
    assert (found.idle_share < 1).all()
    assert found.time_s >= found.stage_s.sum() * (1 - 1e-12)
    assert (found.link_bytes > 0).any() == (tp * pp > 1)


def test_tensor_parallelism_is_faster_and_less_than_ideal() -> None:
    times = [
        float(
            speed_on_chips(
                LLAMA, H100, ParallelPlan(tp=tp), batch=1, weights="bf16", kv="bf16", **LOAD
            ).tpot_s
        )
        for tp in (1, 2, 4, 8)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] / times[3] < 8


def test_a_pipeline_serves_more_but_answers_no_sooner() -> None:
    one, four = (
        speed_on_chips(
            LLAMA, H100, ParallelPlan(pp=pp), batch=np.array([1, 64]), weights="bf16", kv="bf16", **LOAD
        )
        for pp in (1, 4)
    )
    assert four.tpot_s[0] >= one.tpot_s[0]
    assert four.ttft_s[1] < one.ttft_s[1]


def test_chips_without_a_link_cannot_share() -> None:
    chips = [c for c in accelerators().values() if c.link is None and "bf16" in c.peak_flops_per_s]
    with pytest.raises(ScenarioError, match="need a link between them"):
        speed_on_chips(
            LLAMA, machine_from(chips[0]), ParallelPlan(tp=2), batch=1, weights="bf16", kv="bf16", **LOAD
        )


def test_every_model_of_the_catalogue_can_be_split() -> None:
    for spec in catalogue().values():
        found = speed_on_chips(spec, H100, ParallelPlan(pp=2), batch=2, weights="bf16", kv="bf16", **LOAD)
        assert np.isfinite(found.tpot_s)
