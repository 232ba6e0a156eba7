"""The operator table against counts on the engine's own model: FLOPs, and bytes of real tensors.

Torch's counter sees every matrix product that really runs. Attention is run as plain products here,
since the counter does not know the fused kernel of a processor; a causal pass then computes its
whole T x S rectangle and throws away what lies behind the mask, while the table counts the pairs
that the mask lets through, which is what a fused kernel computes.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from core.analytic.kv_cache import cache_bytes
from core.analytic.operators import operators
from core.analytic.pairs import causal_pairs
from core.analytic.params import weight_plan
from core.catalog.formats import FORMATS
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.engine.assemble import assemble, tensor_bytes
from core.engine.attention import GatheredAttention
from core.engine.batch import Batch, Sequence
from core.engine.files.checkpoint import Checkpoint, expected_shapes
from core.engine.files.weight import Weight
from core.engine.kernels import PlainLinear, PrepackedLinear
from core.engine.kv_cache import KVPool
from core.engine.native import attention as native_attention
from core.engine.pages import PageTable
from core.engine.runner import EagerRunner
from core.engine.sampling import Sampler, Sampling
from core.engine.step import StepBytes, StepLabel, Stepper
from core.engine.transformer import Pass, Transformer

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
HAS_ONEDNN = torch._C._has_mkldnn
SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 128,
}
SPECS = {
    "llama, tied": read_config({**SIZES, "model_type": "llama", "tie_word_embeddings": True}),
    "llama, biases": read_config({**SIZES, "model_type": "llama", "attention_bias": True, "mlp_bias": True}),
    "qwen2": read_config({**SIZES, "model_type": "qwen2"}),
    "qwen2, windows": read_config(
        {
            **SIZES,
            "model_type": "qwen2",
            "use_sliding_window": True,
            "sliding_window": 8,
            "max_window_layers": 2,
        }
    ),
    "qwen3, wide heads": read_config({**SIZES, "model_type": "qwen3", "head_dim": 32}),
    "mixtral": read_config(
        {**SIZES, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    ),
    "qwen3 experts, a dense layer": read_config(
        {
            **SIZES,
            "model_type": "qwen3_moe",
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 32,
            "mlp_only_layers": [1],
        }
    ),
}
KV = [record.id for record in FORMATS.values() if "kv" in record.uses]
WEIGHTS = [record.id for record in FORMATS.values() if "weights" in record.uses]


class SeededWeights:
    """Small random tensors of the shapes that a model needs."""

    def __init__(self, spec: ModelSpec) -> None:
        self.shapes = expected_shapes(spec)
        self.generator = torch.Generator().manual_seed(0)

    def weight(self, name: str) -> Weight:
        return Weight(torch.randn(self.shapes[name], generator=self.generator) * 0.05)


def build(spec: ModelSpec, weights: str) -> Transformer:
    checkpoint = Checkpoint(spec, SeededWeights(spec), cast("Any", None), frozenset())
    return assemble(checkpoint, weights, CPU, positions=64, attend=GatheredAttention())


def prepacked_flops(rows: torch.Size, *_: object, out_shape: torch.Size, **__: object) -> int:
    """Two for each multiply-accumulate of a product whose matrix lies in a layout torch cannot see."""
    return 2 * rows[-1] * math.prod(out_shape)


@contextmanager
def counting() -> Iterator[FlopCounterMode]:
    # Which kernel multiplies is timed, so it differs between machines; this one is unknown to torch.
    more = {torch.ops.mkldnn._linear_pointwise: prepacked_flops} if HAS_ONEDNN else {}
    counter = FlopCounterMode(display=False, custom_mapping=more)
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), counter:
        yield counter


def counted_flops(spec: ModelSpec, new_tokens: int, context: int) -> dict[str, int]:
    """FLOPs by operator name in one pass of one sequence, as torch counts them."""
    sequence = Sequence(list(range(context)), num_cached=context - new_tokens)
    values = Pass(Batch.build([(sequence, new_tokens)], CPU), KVPool(spec, context, "fp32", CPU))
    flops: dict[str, int] = {}
    for name, operator in build(spec, "fp32").operators():
        with counting() as counter:
            operator(values)
        flops[name] = flops.get(name, 0) + counter.get_total_flops()
    return flops


def predicted_flops(spec: ModelSpec, new_tokens: int, context: int) -> dict[str, float]:
    table = operators(spec, batch=1, new_tokens=new_tokens, context=context, weights="fp32", kv="fp32")
    return {name: float(flops) for name, flops in table.by_name(table.flops).items() if name != "sample"}


@pytest.mark.skipif(not HAS_ONEDNN, reason="This build of torch has no oneDNN.")
def test_every_kernel_for_plain_weights_is_counted() -> None:
    weight, rows = torch.ones(48, 32), torch.ones(5, 32)
    for kernel in (PlainLinear(weight, None), PrepackedLinear(weight, None)):
        with counting() as counter:
            kernel(rows)
        assert counter.get_total_flops() == 2 * 5 * 48 * 32


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("context", [1, 5, 20])
def test_a_decode_step_does_exactly_the_flops_of_the_table(
    spec: ModelSpec, context: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_attention, "kernels", lambda: None)  # torch counts its own kernels only
    assert counted_flops(spec, 1, context) == predicted_flops(spec, 1, context)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize(("new_tokens", "context"), [(7, 7), (12, 20)])
def test_a_prefill_does_them_too_but_for_what_the_mask_hides(
    spec: ModelSpec, new_tokens: int, context: int
) -> None:
    counted = counted_flops(spec, new_tokens, context)
    predicted = predicted_flops(spec, new_tokens, context)
    features = spec.layers[0].attention.query_features
    for layer in spec.layers:
        hidden_pairs = new_tokens * context - causal_pairs(new_tokens, context, layer.attention.window)
        predicted["attention"] += 4 * features * float(hidden_pairs)
    assert counted == predicted


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("weights", WEIGHTS)
def test_stored_and_streamed_bytes_are_those_of_the_real_tensors(spec: ModelSpec, weights: str) -> None:
    shared = weight_plan(weights, spec).shared_table
    counted = tensor_bytes(build(spec, weights), spec, tied=shared)
    table = operators(spec, batch=1, new_tokens=1, context=1, weights=weights, kv="fp32")
    columns = ("weight_stored_bytes", "weight_streamed_bytes")
    sums = {column: table.by_name(getattr(table, column)) for column in columns}
    predicted = {
        name: {column: int(sums[column][name]) for column in columns}
        for name in dict.fromkeys(table.names)
        if sums["weight_streamed_bytes"][name] > 0
    }
    assert counted == predicted


@pytest.mark.parametrize("kv", KV)
def test_the_pool_takes_the_bytes_of_the_cache(kv: str) -> None:
    spec = SPECS["qwen3, wide heads"]
    assert KVPool(spec, 50, kv, CPU).num_bytes == int(cache_bytes(spec, kv, batch=1, context=50))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize(("new_tokens", "context"), [(1, 20), (7, 7), (12, 20)])
def test_a_step_moves_the_cache_bytes_of_the_table(spec: ModelSpec, new_tokens: int, context: int) -> None:
    pool = KVPool(spec, 2 * context, "bf16", CPU)
    stepper = Stepper(spec, EagerRunner(build(spec, "fp32")), StepBytes(0, 0), CPU)
    pair = [Sequence(list(range(context)), context - new_tokens, PageTable(context, [i])) for i in (0, 1)]
    plan = [(sequence, new_tokens) for sequence in pair]
    _, record = stepper.step(plan, pool, Sampler(Sampling(), CPU), StepLabel(0, "prefill"))
    table = operators(spec, batch=2, new_tokens=new_tokens, context=context, weights="fp32", kv="bf16")
    assert record.kv_read_bytes == table.total("kv_read_bytes")
    assert record.kv_write_bytes == table.total("kv_write_bytes")
