"""Everything that speaks against a plan is said at once, and what is proposed instead works."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analytic.constraints import Load, nearest_plans, violations
from core.analytic.datasheet import machine_from
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.split_rules import split_violations, valid_tensor_degrees
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.model import DenseMLP, Layer, ModelSpec
from core.catalog.models import model
from core.errors import FormatError
from tests.analytic.shapes import EXPERTS, GQA, MLP, SHAPES, stacked

H100 = machine_from(accelerator("h100-sxm-80gb"))
LIGHT = Load(batch=1, context=128, weights="bf16", kv="bf16")
plans = st.builds(
    ParallelPlan,
    tp=st.integers(1, 16),
    pp=st.integers(1, 6),
    ep=st.integers(1, 16),
    dp=st.integers(1, 4),
    cp=st.integers(1, 4),
    sp=st.sampled_from([1, 1, 2, 4]),
)


def topics(spec: ModelSpec, plan: ParallelPlan, load: Load = LIGHT, count: int | None = None) -> list[str]:
    return [one.topic for one in violations(spec, plan, H100, load, count)]


@given(st.sampled_from(list(SHAPES.values())), plans)
def test_what_is_not_refused_divides(spec: ModelSpec, plan: ParallelPlan) -> None:
    if split_violations(spec, plan):
        return
    for stage in stages(spec, plan):
        for whole, part in zip(stage.whole_layers, stage.shard.layers, strict=True):
            if isinstance(whole.feed_forward, DenseMLP) and isinstance(part.feed_forward, DenseMLP):
                width = part.feed_forward.intermediate_size * plan.tp
                assert width == whole.feed_forward.intermediate_size
            heads = [getattr(mixer, "num_heads", 0) for mixer in (whole.mixer, part.mixer)]
            assert heads[1] * plan.tp == heads[0]
    table = device_operators(
        spec, plan, stages(spec, plan)[0], batch=1, new_tokens=1, context=4, weights="bf16", kv="bf16"
    )
    assert float(table.total("weight_stored_bytes")) > 0


@settings(max_examples=25)
@given(st.sampled_from(["dense", "latent experts", "mamba2 hybrid"]), plans, st.integers(1, 16))
def test_proposed_plans_work_and_are_near(name: str, plan: ParallelPlan, count: int) -> None:
    spec = SHAPES[name]
    for near in nearest_plans(spec, plan, H100, LIGHT, count=count):
        assert violations(spec, near, H100, LIGHT) == ()


def test_a_good_plan_is_its_own_nearest() -> None:
    plan = ParallelPlan(tp=4, pp=2)
    assert nearest_plans(model("llama-3.3-70b"), plan, H100, LIGHT)[0] == plan


def test_all_reasons_come_together() -> None:
    spec = stacked(Layer(GQA, EXPERTS), Layer(GQA, MLP), times=1)
    found = topics(spec, ParallelPlan(tp=3, pp=3, ep=5, dp=2, cp=2, sp=2), count=7)
    assert set(found) == {"heads", "columns", "experts", "layers", "context", "chips"}


@pytest.mark.parametrize(
    ("change", "plan", "part"),
    [
        ({}, ParallelPlan(tp=16), "must divide the 8 attention heads; 16 does not. Choose 1, 2, 4 or 8."),
        ({"num_kv_heads": 8, "num_heads": 24}, ParallelPlan(tp=12), "divide the 8 KV heads or be a multiple"),
        ({}, ParallelPlan(tp=2, cp=2), "must divide the 1 copies of each KV head"),
        ({}, ParallelPlan(pp=5), "Each of 5 pipeline stages must hold a layer; small has 4."),
        ({}, ParallelPlan(dp=2, ep=2), "Expert parallelism needs experts; small has none. Set ep to 1."),
    ],
)
def test_each_reason_is_a_sentence_with_a_way_out(
    change: dict[str, int], plan: ParallelPlan, part: str
) -> None:
    spec = stacked(Layer(replace(GQA, **change), MLP), times=4)  # type: ignore[arg-type]
    assert any(part in one.sentence for one in split_violations(spec, plan))


def test_more_chips_than_kv_heads_may_keep_copies() -> None:
    spec = stacked(Layer(replace(GQA, num_kv_heads=2), MLP), times=4)
    assert topics(spec, ParallelPlan(tp=8)) == []
    assert topics(spec, ParallelPlan(tp=8, cp=4)) == []
    assert topics(spec, ParallelPlan(tp=8, cp=3)) == ["context"]
    assert valid_tensor_degrees(8, 2) == [1, 2, 4, 8]


def test_groups_of_a_format_must_not_be_torn() -> None:
    wide = stacked(Layer(replace(GQA, head_dim=128), DenseMLP(18944)), times=2)
    load = replace(LIGHT, weights="gptq-g128")
    assert topics(wide, ParallelPlan(tp=4), load) == []
    assert topics(wide, ParallelPlan(tp=8), load) == ["groups"]
    assert "groups of 128 in gptq-g128" in violations(wide, ParallelPlan(tp=8), H100, load)[-1].sentence


def test_formats_memory_and_links_are_the_chips() -> None:
    spec = model("llama-3.3-70b")
    assert topics(spec, ParallelPlan(), replace(LIGHT, context=8192)) == ["memory"]
    assert topics(spec, ParallelPlan(tp=2), replace(LIGHT, weights="fp8")) == []
    a100 = machine_from(accelerator("a100-sxm-80gb"))
    found = violations(spec, ParallelPlan(tp=2), a100, replace(LIGHT, weights="fp8"))
    assert [one.topic for one in found] == ["format"]
    assert "NVIDIA A100 SXM4 80GB has no fp8 arithmetic. Choose one of" in found[0].sentence
    assert "fp8-weight-only" in found[0].sentence
    blocks = violations(spec, ParallelPlan(tp=2), a100, replace(LIGHT, weights="fp8-block"))
    assert "no fp8 arithmetic, in which fp8-block is multiplied" in blocks[0].sentence
    assert nearest_plans(spec, ParallelPlan(tp=2), a100, replace(LIGHT, weights="fp8")) == ()
    alone = next(c for c in accelerators().values() if c.link is None and "bf16" in c.peak_flops_per_s)
    assert "link" in [one.topic for one in violations(spec, ParallelPlan(tp=2), machine_from(alone), LIGHT)]


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(FormatError, match="must be one of"):
        violations(SHAPES["dense"], ParallelPlan(), H100, replace(LIGHT, weights="int3"))
