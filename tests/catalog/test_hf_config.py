"""A config.json becomes a model's shape, or one sentence on what is wrong with it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalog.fields import LIMITS
from core.catalog.hf_config import MAX_CONFIG_CHARACTERS, parse_config, read_config
from core.catalog.model import RopeScaling
from core.errors import ConfigError

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}
QWEN2 = {**LLAMA, "model_type": "qwen2"}
QWEN3 = {**LLAMA, "model_type": "qwen3"}
MISTRAL = {**LLAMA, "model_type": "mistral"}


def test_a_plain_config_is_read_without_a_note() -> None:
    spec = read_config(LLAMA, id="tiny", source="here")
    attention = spec.layers[0].attention
    assert (spec.num_layers, spec.hidden_size, spec.vocab_size, spec.max_context) == (3, 64, 100, 128)
    assert (attention.num_heads, attention.num_kv_heads, attention.head_dim) == (4, 2, 16)
    assert (spec.id, spec.name, spec.source, spec.notes) == ("tiny", "tiny", "here", ())
    assert not spec.tied_embeddings


@pytest.mark.parametrize(
    ("config", "qkv_bias", "output_bias", "qk_norm"),
    [
        (LLAMA, False, False, False),
        ({**LLAMA, "attention_bias": True}, True, True, False),
        (MISTRAL, False, False, False),
        (QWEN2, True, False, False),
        (QWEN3, False, False, True),
        ({**QWEN3, "attention_bias": True}, True, True, True),
    ],
)
def test_families_differ_in_biases_and_norms(
    config: dict[str, Any], qkv_bias: bool, output_bias: bool, qk_norm: bool
) -> None:
    attention = read_config(config).layers[0].attention
    assert (attention.qkv_bias, attention.output_bias, attention.qk_norm) == (qkv_bias, output_bias, qk_norm)


def test_a_stated_head_dim_beats_the_quotient_and_null_does_not() -> None:
    assert read_config({**QWEN3, "head_dim": 32}).layers[0].attention.head_dim == 32
    assert read_config({**QWEN3, "head_dim": None}).layers[0].attention.head_dim == 16


def test_null_counts_as_absent() -> None:
    nulls = dict.fromkeys(
        ("num_key_value_heads", "head_dim", "tie_word_embeddings", "rope_scaling", "rope_theta", "mlp_bias")
    )
    assert read_config({**LLAMA, **nulls}) == read_config(
        {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    )


def test_rope_theta_may_stand_in_either_place() -> None:
    flat = read_config({**LLAMA, "rope_theta": 500_000})
    nested = read_config({**LLAMA, "rope_parameters": {"rope_theta": 500_000, "rope_type": "default"}})
    assert flat.rope_theta == nested.rope_theta == 500_000.0
    assert flat.rope_scaling is None
    assert nested.rope_scaling is None


def test_stretched_positions_are_kept_and_said() -> None:
    table = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
    spec = read_config({**LLAMA, "rope_scaling": {**table, "low_freq_factor": 1.0, "high_freq_factor": 4.0}})
    assert spec.rope_scaling == RopeScaling("llama3", 8.0, 8192, 1.0, 4.0)
    assert spec.max_context == 8 * 8192
    assert "stretched 8 times (llama3)" in spec.notes[0]
    old = read_config({**LLAMA, "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert old.rope_scaling == RopeScaling("linear", 2.0)


def test_a_window_that_binds_is_kept_and_said() -> None:
    spec = read_config({**MISTRAL, "sliding_window": 16})
    assert {layer.attention.window for layer in spec.layers} == {16}
    assert "3 of 3 layers look back 16 tokens at most" in spec.notes[0]
    assert read_config({**MISTRAL, "sliding_window": None}).notes == ()


def test_qwen_windows_hold_only_where_they_are_switched_on() -> None:
    stated = {**QWEN2, "sliding_window": 16, "max_window_layers": 1}

    def windows(**more: Any) -> list[int | None]:
        return [layer.attention.window for layer in read_config({**stated, **more}).layers]

    assert windows(use_sliding_window=False) == windows() == [None, None, None]
    assert windows(use_sliding_window=True) == [None, 16, 16]
    kinds = ["sliding_attention", "full_attention", "full_attention"]
    assert windows(use_sliding_window=True, layer_types=kinds) == [16, None, None]
    with pytest.raises(ConfigError, match="one entry a layer; got 2 for 3 layers"):
        windows(use_sliding_window=True, layer_types=kinds[:2])


def test_sizes_that_transformers_would_assume_are_said() -> None:
    silent = {k: v for k, v in LLAMA.items() if k not in {"vocab_size", "intermediate_size"}}
    spec = read_config(silent)
    assert (spec.vocab_size, spec.layers[0].mlp.intermediate_size) == (32_000, 11_008)
    assert len(spec.notes) == 2
    assert any("does not state vocab_size; 32,000" in note for note in spec.notes)


def test_quantised_checkpoints_are_said() -> None:
    note = read_config({**LLAMA, "quantization_config": {"quant_method": "gptq"}}).notes[0]
    assert "stored quantised (gptq)" in note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "A config must be JSON; this text is not"),
        ("", "A config must be JSON"),
        ("[1, 2]", "A config must be a JSON object; got a list"),
        ("null", "got null"),
        ('"llama"', "got text"),
        ("[" * 100_000, "nested hundreds of levels deep"),
        ("{" + '"a":{' * 50_000, "nested hundreds of levels deep"),
        (" " * (MAX_CONFIG_CHARACTERS + 1), "may have up to 1,000,000 characters"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "A config must be JSON"),
    ],
)
def test_text_that_is_no_config(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(text)


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must state {key}; it is missing or null"),
        (0, "{key} must be from 1 to [0-9,]+; got 0"),
        (-8, "{key} must be from 1 to [0-9,]+; got -8"),
        (10**12, "{key} must be from 1 to [0-9,]+; got 1,000,000,000,000"),
        (10**4000, "{key} must be from 1 to [0-9,]+; got a number of about 2"),
        (float("nan"), "{key} must be a whole number; got nan"),
        (float("inf"), "{key} must be a whole number; got inf"),
        (2.5, "{key} must be a whole number; got 2.5"),
        (True, "{key} must be a whole number; got True"),
        ("64", "{key} must be a whole number; got '64'"),
        ([64, 64], "{key} must (be a whole number; got a list|have one entry a layer; got 2 for 3)"),
        ({}, "{key} must be a whole number; got a dict"),
    ],
)
def test_each_size_is_checked(key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message.format(key=key)):
        read_config({**LLAMA, key: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model_type": "gemma9", "vocab_size": None},
            "'gemma9', which is not known here, must state vocab_size",
        ),
        ({"model_type": "gemma9", "mamba_d_state": 4}, "The layers behind mamba_d_state cannot be counted"),
        ({"model_type": 3}, "model_type must be text; got 3"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "must be a multiple of num_attention_heads"),
        ({"num_key_value_heads": 3}, "must be a multiple of num_key_value_heads; got 4 and 3"),
        ({"num_key_value_heads": 8}, "must be a multiple of num_key_value_heads; got 4 and 8"),
        ({"head_dim": 15}, "must be even"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be true or false; got 'yes'"),
        ({"attention_bias": 1}, "attention_bias must be true or false; got 1"),
        ({"rope_theta": float("nan")}, "rope_theta must be above zero and finite; got nan"),
        ({"rope_theta": 10**400}, "rope_theta must be above zero and finite"),
        ({"rope_theta": "big"}, "rope_theta must be a number; got 'big'"),
        ({"rms_norm_eps": -1e-6}, "rms_norm_eps must be above zero"),
        ({"rms_norm_eps": True}, "rms_norm_eps must be a number; got True"),
        ({"rope_scaling": "linear"}, "rope_scaling must be an object; got 'linear'"),
        ({"rope_parameters": {"rope_type": 3}}, "rope_type must be text"),
        ({"hidden_act": 3}, "hidden_act must be text; got 3"),
        ({"vocab_size": -1}, "vocab_size must be from 1"),
        ({"quantization_config": [1]}, "quantization_config must be an object; got a list"),
    ],
)
def test_each_value_that_cannot_be_has_its_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_config({**LLAMA, **change})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from([LLAMA, MISTRAL, QWEN2, QWEN3]),
    st.dictionaries(
        st.sampled_from([*LIMITS, "rope_scaling", "rope_parameters", "layer_types", "use_sliding_window"]),
        anything,
        max_size=3,
    ),
)
def test_no_value_raises_anything_but_a_sentence(config: dict[str, Any], change: dict[str, object]) -> None:
    try:
        spec = parse_config(json.dumps({**config, **change}))
    except ConfigError as problem:
        assert str(problem).endswith(".")
    else:
        assert spec.num_layers >= 1
