"""The operator table counts what a forward pass does, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.operators import operators
from core.analytic.pairs import causal_pairs
from core.analytic.table import COLUMNS, Operators
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.catalog.models import model
from core.errors import FormatError, ScenarioError
from core.units import Number

LLAMA = model("llama-3.1-8b")
MIXED = read_config(
    {
        "model_type": "qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "vocab_size": 100,
        "use_sliding_window": True,
        "sliding_window": 5,
        "max_window_layers": 3,
    }
)


def table_of(spec: ModelSpec, batch: Number, new_tokens: Number, context: Number) -> Operators:
    return operators(spec, batch=batch, new_tokens=new_tokens, context=context, weights="bf16", kv="bf16")


def test_rows_stand_in_execution_order() -> None:
    assert list(table_of(LLAMA, 1, 1, 1)) == [
        "embedding",
        "attention_norm",
        "qkv",
        "rope",
        "kv_write",
        "attention",
        "output",
        "attention_residual",
        "mlp_norm",
        "gate_up",
        "activation",
        "down",
        "mlp_residual",
        "final_norm",
        "lm_head",
        "sample",
    ]
    assert "qk_norm" in list(table_of(model("qwen3-0.6b"), 1, 1, 1))


def test_identical_layers_are_one_row() -> None:
    table = table_of(LLAMA, 1, 1, 1)
    assert table.repeats[table.index("qkv")] == 32
    assert table.repeats[table.index("lm_head")] == 1


def test_layers_that_differ_are_rows_of_the_same_name() -> None:
    table = table_of(MIXED, 1, 1, 40)
    full, windowed = table.positions("attention")
    assert table.repeats[[full, windowed]].tolist() == [3, 1]
    assert table.kv_read_bytes[full] / 3 == 8 * table.kv_read_bytes[windowed]
    by_name = table.by_name(table.kv_read_bytes)
    assert float(by_name["attention"]) == float(table.total("kv_read_bytes"))
    assert table.positions("router") == ()


@given(st.integers(1, 40), st.integers(0, 40), st.none() | st.integers(1, 60))
def test_causal_pairs_are_those_a_mask_lets_through(new: int, before: int, window: int | None) -> None:
    context = new + before
    query = np.arange(before, context)[:, None]
    key = np.arange(context)[None, :]
    seen = (key <= query) & (key > query - (window or context))
    assert float(causal_pairs(new, context, window)) == seen.sum()


@given(st.integers(1, 64), st.integers(1, 500))
def test_a_linear_layer_does_two_flops_a_weight_and_row(batch: int, tokens: int) -> None:
    table = table_of(LLAMA, batch, tokens, tokens)
    weights = 32 * (4096 * 6144 + 4096 * 4096 + 3 * 4096 * 14336)
    rows = [row for row, kind in enumerate(table.kinds) if kind == "linear" and table.names[row] != "lm_head"]
    assert table.flops[rows].sum() == 2 * weights * batch * tokens
    assert table.flops[table.index("lm_head")] == 2 * 4096 * 128256 * batch


@given(st.integers(1, 30), st.integers(1, 30))
def test_a_prefill_in_two_parts_does_the_work_of_one(first: int, second: int) -> None:
    whole = table_of(MIXED, 2, first + second, first + second)
    head, tail = table_of(MIXED, 2, first, first), table_of(MIXED, 2, second, first + second)
    for row, kind in enumerate(whole.kinds):
        if kind in {"linear", "attention"} and whole.names[row] != "lm_head":
            assert whole.flops[row] == head.flops[row] + tail.flops[row]
    assert whole.total("kv_write_bytes") == head.total("kv_write_bytes") + tail.total("kv_write_bytes")


@given(st.integers(1, 64), st.integers(1, 10**5))
def test_a_batch_shares_weights_but_not_caches(batch: int, context: int) -> None:
    one, many = table_of(LLAMA, 1, 1, context), table_of(LLAMA, batch, 1, context)
    linear = [row for row, kind in enumerate(one.kinds) if kind == "linear"]
    assert (many.weight_streamed_bytes[linear] == one.weight_streamed_bytes[linear]).all()
    assert many.total("kv_read_bytes") == batch * one.total("kv_read_bytes")
    assert many.total("flops") == batch * one.total("flops")


def test_only_the_wanted_rows_reach_the_head() -> None:
    last = table_of(LLAMA, 2, 10, 10)
    every = operators(LLAMA, batch=2, new_tokens=10, context=10, weights="bf16", kv="bf16", logit_rows=20)
    head = last.index("lm_head")
    assert every.flops[head] == 10 * last.flops[head]


def test_a_sweep_equals_its_points() -> None:
    batch, context = np.array([[1], [3]]), np.array([1, 7, 1000])
    sweep = table_of(LLAMA, batch, 1, context)
    for i, j in np.ndindex(2, 3):
        point = table_of(LLAMA, int(batch[i, 0]), 1, int(context[j]))
        for column in COLUMNS:
            swept = np.broadcast_to(getattr(sweep, column), (len(sweep), 2, 3))
            assert np.array_equal(swept[:, i, j], getattr(point, column))


def test_large_counts_do_not_overflow() -> None:
    table = table_of(LLAMA, np.array([65_536]), 2_000_000, 2_000_000)
    assert (table.flops >= 0).all()
    assert table.total("flops")[0] > 1e22


@pytest.mark.parametrize(
    ("batch", "new_tokens", "context", "message"),
    [
        (0, 1, 1, "The batch must be 1 or more; got 0"),
        (1, 0, 1, "The new tokens must be 1 or more; got 0"),
        (1, 1, -1, "The context must be 1 or more; got -1"),
        (float("nan"), 1, 1, "The batch must be 1 or more; got nan"),
        (1, 8, 4, "The context must include the new tokens"),
        (1, 1, np.array([4, 0]), "The context must be 1 or more; got 0"),
    ],
)
def test_impossible_counts_are_sentences(
    batch: Number, new_tokens: Number, context: Number, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        table_of(LLAMA, batch, new_tokens, context)


def test_narrow_activations_move_fewer_bytes_and_change_no_weight() -> None:
    def table(activations: str | None) -> Operators:
        return operators(
            LLAMA, batch=2, new_tokens=8, context=8, weights="bf16", kv="bf16", activations=activations
        )

    usual, narrow = table(None), table("fp8_e4m3")
    assert narrow.total("activation_bytes") * 2 == usual.total("activation_bytes")
    assert narrow.total("weight_stored_bytes") == usual.total("weight_stored_bytes")
    assert narrow.formats[narrow.index("mlp_norm")] == "fp8_e4m3"
    with pytest.raises(FormatError, match=r"A format for activations must be one of .*; got 'q8_0'"):
        table("q8_0")
