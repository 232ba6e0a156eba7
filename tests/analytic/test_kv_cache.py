"""The cache grows with tokens, never past a window, and only by the heads that are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.kv_cache import bytes_per_token, cache_bytes
from core.analytic.operators import operators
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue, model
from core.errors import FormatError

models = st.sampled_from(list(catalogue().values()))
full = st.sampled_from(
    [
        spec
        for spec in catalogue().values()
        if all(not layer.mixer or not layer.mixer.span for layer in spec.layers)
    ]
)
WINDOWED = model("mistral-7b-v0.1")


@given(full, st.integers(1, 10**6), st.integers(1, 10**4))
def test_it_is_linear_in_tokens_and_in_sequences(spec: ModelSpec, context: int, batch: int) -> None:
    expected = bytes_per_token(spec, "bf16") * context * batch
    assert float(cache_bytes(spec, "bf16", batch, context)) == expected


@given(models, st.integers(1, 10**6))
def test_it_never_shrinks_with_context(spec: ModelSpec, context: int) -> None:
    fewer, more = cache_bytes(spec, "bf16", 1, np.array([context, context + 1]))
    assert fewer <= more


@given(models)
def test_wider_formats_take_proportionally_more(spec: ModelSpec) -> None:
    assert bytes_per_token(spec, "fp32") == 2 * bytes_per_token(spec, "fp16")


def test_a_window_stops_the_growth() -> None:
    sizes = cache_bytes(WINDOWED, "bf16", 1, np.array([4095, 4096, 4097, 10**6]))
    assert sizes.tolist() == [131072 * tokens for tokens in (4095, 4096, 4096, 4096)]


def test_writing_a_prompt_fills_exactly_the_cache() -> None:
    spec = read_config(
        {
            "model_type": "qwen3",
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 6,
            "intermediate_size": 8,
            "vocab_size": 8,
        }
    )
    table = operators(spec, batch=5, new_tokens=7, context=7, weights="bf16", kv="fp32")
    assert float(table.total("kv_write_bytes")) == float(cache_bytes(spec, "fp32", 5, 7))


def test_a_weight_format_is_no_cache_format() -> None:
    with pytest.raises(FormatError, match="A format for kv must be one of"):
        bytes_per_token(WINDOWED, "gptq-g128")
