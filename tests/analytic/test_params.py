"""What is stored is the sum of the tensors, each in the format that its role has."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.operators import operators
from core.analytic.params import Role, count, stored_bytes, weight_plan
from core.catalog.formats import FORMATS
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec, MoE
from core.catalog.models import catalogue, model
from core.errors import FormatError

ROLES: tuple[Role, ...] = ("linear", "head", "table", "vector")
WEIGHTS = [record.id for record in FORMATS.values() if "weights" in record.uses]


@st.composite
def specs(draw: st.DrawFn) -> ModelSpec:
    """A small decoder of any family, tied or not, with or without windows."""
    kv_heads = draw(st.integers(1, 4))
    config: dict[str, Any] = {
        "model_type": draw(st.sampled_from(["llama", "mistral", "qwen2", "qwen3"])),
        "hidden_size": 8 * draw(st.integers(1, 16)),
        "num_hidden_layers": draw(st.integers(1, 6)),
        "num_attention_heads": kv_heads * draw(st.integers(1, 4)),
        "num_key_value_heads": kv_heads,
        "head_dim": 2 * draw(st.integers(1, 32)),
        "intermediate_size": draw(st.integers(1, 300)),
        "vocab_size": draw(st.integers(1, 500)),
        "tie_word_embeddings": draw(st.booleans()),
        "use_sliding_window": draw(st.booleans()),
        "sliding_window": draw(st.none() | st.integers(1, 40)),
        "max_window_layers": draw(st.integers(1, 6)),
        "attention_bias": draw(st.booleans()),
        "mlp_bias": draw(st.booleans()),
    }
    return read_config(config)


@given(specs())
def test_16_bit_storage_is_two_bytes_a_parameter(spec: ModelSpec) -> None:
    assert stored_bytes(spec, "bf16") == 2 * count(spec).total
    assert stored_bytes(spec, "fp32") == 4 * count(spec).total


@given(specs(), st.sampled_from(WEIGHTS))
def test_the_table_stores_what_the_parameters_take(spec: ModelSpec, weights: str) -> None:
    table = operators(spec, batch=1, new_tokens=1, context=1, weights=weights, kv="bf16")
    assert float(table.total("weight_stored_bytes")) == stored_bytes(spec, weights)


@given(specs(), st.sampled_from(WEIGHTS))
def test_a_decode_step_streams_all_but_the_tables_other_rows(spec: ModelSpec, weights: str) -> None:
    plan = weight_plan(weights, spec)
    table = operators(spec, batch=1, new_tokens=1, context=9, weights=weights, kv="bf16")
    rows_read = float(table.weight_streamed_bytes[table.index("embedding")])
    whole = float(table.weight_stored_bytes[table.index("embedding")])
    assert rows_read * spec.vocab_size == whole
    kept_apart = 0.0 if plan.shared_table else whole
    streamed = float(table.total("weight_streamed_bytes"))
    assert streamed == stored_bytes(spec, weights) - kept_apart + rows_read


@given(specs())
def test_the_parts_of_a_count_are_the_whole(spec: ModelSpec) -> None:
    counted = count(spec)
    parts = counted.embedding + counted.head + counted.attention + counted.mlp + counted.norms
    assert counted.total == counted.active == parts


@pytest.mark.parametrize(
    ("weights", "formats", "shared"),
    [  # of the layers, the head, the table and the norms
        ("fp32", ("fp32", "fp32", "fp32", "fp32"), True),
        ("bf16", ("bf16", "bf16", "bf16", "bf16"), True),
        ("int8", ("int8", "int8", "int8", "bf16"), True),
        ("int8-dynamic", ("int8-dynamic", "int8-dynamic", "int8", "fp32"), False),
        ("int4", ("int4", "int8", "int8", "bf16"), True),
    ],
)
def test_each_role_has_its_format(weights: str, formats: tuple[str, ...], shared: bool) -> None:
    tied = weight_plan(weights, model("smollm2-135m"))
    assert tuple(tied.format_of(role).id for role in ROLES) == formats
    assert tied.shared_table is shared
    assert not weight_plan(weights, model("llama-3.1-8b")).shared_table


def test_llama_8b_stores_16_and_streams_15_gb() -> None:
    shape = model("llama-3.1-8b")
    table = operators(shape, batch=1, new_tokens=1, context=1, weights="bf16", kv="bf16")
    assert stored_bytes(shape, "bf16") == 16_060_522_496
    one_row = 2 * 4096
    assert float(table.total("weight_streamed_bytes")) == 2 * 7_504_924_672 + one_row


def test_a_cache_format_is_no_weight_format() -> None:
    with pytest.raises(FormatError, match="A format for weights must be one of"):
        weight_plan("q8", model("smollm2-135m"))


@pytest.mark.parametrize("id", list(catalogue()))
@pytest.mark.parametrize("weights", ["bf16", "q4_k", "gptq-g128", "fp8-block", "mxfp4", "nvfp4"])
def test_every_catalogue_model_stores_what_its_table_and_its_towers_take(id: str, weights: str) -> None:
    spec = model(id)
    table = operators(spec, batch=1, new_tokens=1, context=1, weights=weights, kv="bf16")
    towers = 2 * count(spec).towers
    assert float(table.total("weight_stored_bytes")) + towers == stored_bytes(spec, weights)


@pytest.mark.parametrize("id", list(catalogue()))
def test_the_parts_of_every_catalogue_count_are_the_whole(id: str) -> None:
    counted = count(model(id))
    layers = counted.attention + counted.mlp + counted.norms + counted.other
    assert counted.total == counted.embedding + counted.head + layers + counted.towers
    has_experts = any(isinstance(layer.feed_forward, MoE) for layer in model(id).layers)
    assert (counted.active < counted.total - counted.towers) == has_experts


def test_only_the_experts_of_gpt_oss_are_in_mxfp4() -> None:
    plan = weight_plan("mxfp4", model("gpt-oss-20b"))
    assert (plan.format_of("expert").id, plan.format_of("linear").id, plan.head.id) == (
        "mxfp4",
        "bf16",
        "bf16",
    )
    other = weight_plan("mxfp4", model("mixtral-8x7b-v0.1"))
    assert (other.format_of("expert").id, other.format_of("linear").id, other.head.id) == (
        "mxfp4",
        "mxfp4",
        "bf16",
    )
