"""A mixture of experts: what a step reads is what its tokens picked, alone, together, and cached or not."""

from typing import Any

import pytest
import torch

from core.analytic.experts import distinct_experts
from core.engine.batch import Batch, Sequence
from core.engine.engine import CacheKind, Engine
from core.engine.feed_forward import Experts
from core.engine.sampling import Sampler, Sampling
from core.engine.scheduler import Serving
from core.engine.step import StepLabel
from core.engine.transformer import Pass
from tests.engine.forward import logits, random_ids, region, relative_error
from tests.engine.small import requests, small_engine

pytestmark = pytest.mark.torch

MIXTURE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
}
CPU = torch.device("cpu")


def mixture(cache: CacheKind = "contiguous") -> Engine:
    return small_engine(cache, **MIXTURE)


def picked_by_hand(engine: Engine, ids: list[int]) -> list[set[int]]:
    """The experts that the tokens of a prompt pick, layer by layer, by the plain formula."""
    values = Pass(Batch.build([(Sequence(list(ids)), len(ids))], CPU), engine.reserve(len(ids)))
    found: list[set[int]] = []
    routers = iter(block.feed_forward for block in engine.model.blocks)
    with torch.inference_mode():
        for name, operator in engine.model.operators():
            if name == "router":
                part = next(routers)
                assert isinstance(part, Experts)
                found.append(set(part.router_linear(values.normed).topk(2).indices.flatten().tolist()))
            operator(values)
    return found


@pytest.mark.parametrize("tokens", [1, 3, 12])
def test_a_step_counts_the_experts_it_read_and_their_bytes(tokens: int) -> None:
    engine, ids = mixture(), random_ids(tokens)
    picked = picked_by_hand(engine, ids)
    plan = [(Sequence(ids), tokens)]
    _, record = engine.stepper.step(
        plan, engine.reserve(tokens), Sampler(Sampling(), CPU), StepLabel(0, "prefill")
    )
    assert record.experts_read == sum(len(experts) for experts in picked)
    sizes = engine.tensor_bytes()
    expert = sum(
        sizes[name]["weight_stored_bytes"] // (2 * 8) for name in ("experts_gate_up", "experts_down")
    )
    others = {name: size["weight_streamed_bytes"] for name, size in sizes.items() if "experts" not in name}
    row = others.pop("embedding")
    assert record.weight_bytes == sum(others.values()) + tokens * row + record.experts_read * expert


def test_one_token_reads_as_many_experts_as_expected_and_many_read_nearly_all() -> None:
    engine = mixture()
    steps = engine.generate(random_ids(60), Sampling(), max_tokens=3, end_tokens=frozenset()).steps
    assert steps[1].experts_read == 2 * float(distinct_experts(8, 2, 1)) == 4
    assert 0.7 < steps[0].experts_read / (2 * float(distinct_experts(8, 2, 60))) <= 1.01


def test_a_token_gets_the_same_logits_alone_and_beside_others() -> None:
    engine = mixture()
    first, second = random_ids(9), random_ids(14, seed=1)
    alone = [logits(engine, ids, [len(ids)])[0] for ids in (first, second)]
    pair = [Sequence(ids, table=region(start)) for ids, start in ((first, 0), (second, 20))]
    batch = Batch.build([(sequence, len(sequence.token_ids)) for sequence in pair], CPU)
    together = engine.runner.run(batch, engine.reserve(40)).logits
    for found, expected in zip(together, alone, strict=True):
        assert relative_error(found, expected) < 1e-5


@pytest.mark.parametrize("cache", ["paged", "none"])
def test_cached_paged_and_batched_texts_are_those_of_the_uncached_model(cache: CacheKind) -> None:
    lengths = [(5, 9), (17, 6), (1, 12)]
    serving = Serving(max_sequences=1 if cache == "none" else 3, step_tokens=16)
    found = mixture(cache).serve(requests(lengths), serving).generations
    expected = [mixture().serve([request]).generations[0] for request in requests(lengths)]
    assert [each.token_ids for each in found] == [each.token_ids for each in expected]


@pytest.mark.parametrize("weights", ["fp32", "bf16", "fp16", "int8", "int8-g32", "int8-dynamic", "int4"])
def test_the_tiny_mixture_writes_in_every_weight_format(weights: str) -> None:
    engine = Engine.load("shape:tiny-moe", weights=weights, kv="bf16", threads=1)
    result = engine.generate(engine.encode("experts", raw=True), Sampling(), max_tokens=4)
    assert len(result.token_ids) == 4
    assert result.steps[1].experts_read == 6 * 2
    assert set(engine.kernels) == {"qkv", "output", "router", "experts_gate_up", "experts_down", "lm_head"}
