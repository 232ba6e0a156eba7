"""Model families: one small function each, from a config to its layers.

Adding a family is a function and an entry in ``FAMILIES``; nothing else asks which family a model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core.catalog.fields import Fields
from core.catalog.model import Attention, DenseMLP, Layer
from core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Family:
    """What a model type fixes beyond its config.

    Attributes:
        layers: the config's layers, in order.
        vocab_size, intermediate_size, max_context: what transformers assumes when the config is silent.
        tied_embeddings: the same for tie_word_embeddings.
    """

    layers: Callable[[Fields, Family], tuple[Layer, ...]]
    vocab_size: int
    intermediate_size: int
    max_context: int
    tied_embeddings: bool = False


def _llama(fields: Fields, family: Family) -> tuple[Layer, ...]:
    """Llama: one flag puts a bias on all four attention projections, another on the MLP."""
    bias = fields.flag("attention_bias", default=False)
    attention = _attention(fields, qkv_bias=bias, output_bias=bias)
    mlp = _mlp(fields, family, bias=fields.flag("mlp_bias", default=False))
    return (Layer(attention, mlp),) * fields.count("num_hidden_layers")


def _mistral(fields: Fields, family: Family) -> tuple[Layer, ...]:
    """Mistral: no biases; a sliding window, where one is stated, holds on every layer."""
    window = fields.optional_count("sliding_window")
    attention = _attention(fields, window=window)
    layers = (Layer(attention, _mlp(fields, family)),) * fields.count("num_hidden_layers")
    _note_window(fields, layers)
    return layers


def _qwen2(fields: Fields, family: Family) -> tuple[Layer, ...]:
    """Qwen2 and 2.5: biases on Q, K and V alone; windows only where use_sliding_window says so."""
    mlp = _mlp(fields, family)
    layers = tuple(
        Layer(_attention(fields, qkv_bias=True, window=window), mlp) for window in _qwen_windows(fields)
    )
    _note_window(fields, layers)
    return layers


def _qwen3(fields: Fields, family: Family) -> tuple[Layer, ...]:
    """Qwen3 dense: a norm on each head's query and key; one flag for the attention's biases."""
    bias = fields.flag("attention_bias", default=False)
    mlp = _mlp(fields, family)
    layers = tuple(
        Layer(_attention(fields, qkv_bias=bias, output_bias=bias, qk_norm=True, window=window), mlp)
        for window in _qwen_windows(fields)
    )
    _note_window(fields, layers)
    return layers


#: model_type -> how its configs are read.
FAMILIES: Final[dict[str, Family]] = {
    "llama": Family(_llama, vocab_size=32_000, intermediate_size=11_008, max_context=2_048),
    "mistral": Family(_mistral, vocab_size=32_000, intermediate_size=14_336, max_context=131_072),
    "qwen2": Family(_qwen2, vocab_size=151_936, intermediate_size=22_016, max_context=32_768),
    "qwen3": Family(_qwen3, vocab_size=151_936, intermediate_size=22_016, max_context=32_768),
}


# --- Parts that families share --------------------------------------------------------------------


def _attention(
    fields: Fields,
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
    qk_norm: bool = False,
    window: int | None = None,
) -> Attention:
    heads = fields.count("num_attention_heads")
    kv_heads = fields.optional_count("num_key_value_heads") or heads
    if heads % kv_heads:
        raise ConfigError(
            f"num_attention_heads must be a multiple of num_key_value_heads; got {heads:,} and "
            f"{kv_heads:,}. Correct the config."
        )
    head_dim = _head_dim(fields, heads)
    return Attention(heads, kv_heads, head_dim, qkv_bias, output_bias, qk_norm, window)


def _head_dim(fields: Fields, heads: int) -> int:
    """The key where it is stated; the quotient otherwise, which must then be whole."""
    hidden = fields.count("hidden_size")
    head_dim = fields.optional_count("head_dim")
    if head_dim is None:
        if hidden % heads:
            raise ConfigError(
                f"hidden_size must be a multiple of num_attention_heads where head_dim is not stated; "
                f"got {hidden:,} and {heads:,}. Correct the config."
            )
        head_dim = hidden // heads
    if head_dim % 2:
        raise ConfigError(
            f"The head dimension must be even, since rotary positions pair its halves; got {head_dim:,}. "
            "Correct the config."
        )
    return head_dim


def _mlp(fields: Fields, family: Family, *, bias: bool = False) -> DenseMLP:
    activation = fields.text("hidden_act") or "silu"
    if activation not in {"silu", "swish"}:
        raise ConfigError(
            f"hidden_act must be silu for this model type; got {activation[:60]!r}. "
            "Models with another activation cannot be run or counted yet."
        )
    return DenseMLP(fields.count_or("intermediate_size", family.intermediate_size), bias)


def _qwen_windows(fields: Fields) -> list[int | None]:
    """One window a layer: from max_window_layers on, or as layer_types lists it."""
    layers = fields.count("num_hidden_layers")
    if not fields.flag("use_sliding_window", default=False):
        return [None] * layers
    window = fields.optional_count("sliding_window")
    kinds = fields.texts("layer_types")
    if kinds is not None:
        if len(kinds) != layers:
            raise ConfigError(
                f"layer_types must have one entry a layer; got {len(kinds):,} for {layers:,} layers. "
                "Correct the config."
            )
        return [window if kind == "sliding_attention" else None for kind in kinds]
    first = fields.optional_count("max_window_layers") or layers
    return [window if layer >= first else None for layer in range(layers)]


def _note_window(fields: Fields, layers: tuple[Layer, ...]) -> None:
    windows = [layer.attention.window for layer in layers if layer.attention.window is not None]
    if windows:
        fields.notes.append(
            f"{len(windows)} of {len(layers)} layers look back {windows[0]:,} tokens at most (sliding "
            "window); past that their cache stops growing."
        )
