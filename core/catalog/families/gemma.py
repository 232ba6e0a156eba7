"""Gemma, one generation after the other: gated MLPs with GELU, tied embeddings, wide heads."""

from __future__ import annotations

from dataclasses import replace

from core.catalog.families.expert_parts import experts
from core.catalog.families.family import Decoder
from core.catalog.families.llama import SANDWICH_NORMS
from core.catalog.families.parts import (
    all_full,
    attention,
    dense,
    every_nth,
    kinds,
    note_windows,
    num_layers,
    spanned,
    stack,
)
from core.catalog.fields import Fields
from core.catalog.model import Attention, Layer, MoE, Part, PerLayerEmbedding

#: What Gemma 4 assumes for its global heads, and for the features that each layer has of its own.
_GLOBAL_HEAD_DIM = 512
_PER_LAYER_SIZE = 256


def gemma(fields: Fields) -> Decoder:
    """Gemma 1: a Llama with wide heads."""
    bias = fields.flag("attention_bias", default=False)
    return Decoder(
        stack(
            fields,
            [all_full(0)] * num_layers(fields),
            lambda at, _: Layer(attention(at, qkv_bias=bias, output_bias=bias), dense(at)),
        )
    )


def gemma2(fields: Fields) -> Decoder:
    """Gemma 2: every second layer is global; a norm before and after each part."""
    return _sandwich(fields, every=2, qk_norm=False)


def gemma3(fields: Fields) -> Decoder:
    """Gemma 3: every sixth layer is global; queries and keys are normalised."""
    return _sandwich(fields, every=6, qk_norm=True)


def _sandwich(fields: Fields, every: int, *, qk_norm: bool) -> Decoder:
    bias = fields.flag("attention_bias", default=False)

    def layer(at: Fields, kind: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias, qk_norm=qk_norm)
        return Layer(spanned(at, mixer, kind), dense(at), SANDWICH_NORMS)

    layers = stack(fields, kinds(fields, every_nth(every)), layer)
    note_windows(fields, layers)
    return Decoder(layers)


def gemma4(fields: Fields) -> Decoder:
    """Gemma 4: global layers have heads of their own size and number, and may use the keys as values.

    With ``enable_moe_block`` experts stand beside the MLP, each with norms of its own. The last
    ``num_kv_shared_layers`` layers read the cache of an earlier one and have no keys of their own.
    """
    count = num_layers(fields)
    names = kinds(fields, every_nth(6))
    if names:
        names[-1] = "full"  # the last layer is global whatever the pattern says
    shared = fields.number_or("num_kv_shared_layers", 0)
    marked = [(name, index >= count - shared) for index, name in enumerate(names)]
    layers = stack(fields, marked, lambda at, kind: _gemma4_layer(at, *kind))
    note_windows(fields, layers)
    return Decoder(layers, per_layer_embedding=_per_layer(fields))


def _gemma4_layer(fields: Fields, kind: str, shares_cache: bool) -> Layer:
    bias = fields.flag("attention_bias", default=False)
    mixer = attention(fields, qkv_bias=bias, output_bias=bias, qk_norm=True)
    if kind == "full":
        mixer = _global_heads(fields, mixer)
    mixer = spanned(fields, mixer, kind)
    if shares_cache:
        mixer = replace(mixer, kv_projection="none", keeps_cache=False, qk_norm_values=mixer.head_dim)
    wide = shares_cache and fields.flag("use_double_wide_mlp", default=False)
    mlp = dense(fields)
    mlp = replace(mlp, intermediate_size=2 * mlp.intermediate_size) if wide else mlp
    size = _per_layer_size(fields)
    if not fields.flag("enable_moe_block", default=False):
        return Layer(mixer, mlp, SANDWICH_NORMS, per_layer_input=size)
    routed = experts(fields)
    # The router has a scale for each feature of its input and for each expert.
    values = fields.count("hidden_size") + routed.num_experts
    part = MoE(routed.num_experts, routed.experts_per_token, routed.expert, mlp, router_values=values)
    norms = (*SANDWICH_NORMS, "experts_norm", "post_shared_norm", "post_experts_norm")
    return Layer(mixer, part, norms, per_layer_input=size)


def gemma3n(fields: Fields) -> Decoder:
    """Gemma 3n: every fifth layer global, shared caches at the end, features of their own for all layers.

    Beside each layer stand a low-rank path (LAuReL) and the mixing of several residual streams (AltUp).
    """
    count, hidden = num_layers(fields), fields.count("hidden_size")
    shared = fields.number_or("num_kv_shared_layers", 0)
    streams, rank = fields.count("altup_num_inputs"), fields.count("laurel_rank")
    beside = (
        Part("LAuReL", 2 * hidden * rank + hidden),
        Part("AltUp", streams**2 * (1 + streams) + hidden * (streams + 2)),
    )
    marked = [(name, index >= count - shared) for index, name in enumerate(kinds(fields, every_nth(5)))]

    def layer(at: Fields, kind: tuple[str, bool]) -> Layer:
        mixer = spanned(at, attention(at, qk_norm=True), kind[0])
        if kind[1]:
            mixer = replace(mixer, kv_projection="none", keeps_cache=False, qk_norm_values=mixer.head_dim)
        size = fields.count("hidden_size_per_layer_input")
        return Layer(mixer, dense(at), SANDWICH_NORMS, per_layer_input=size, others=beside)

    layers = stack(fields, marked, layer)
    note_windows(fields, layers)
    tables = PerLayerEmbedding(
        fields.count("vocab_size_per_layer_input"), fields.count("hidden_size_per_layer_input")
    )
    mixing = Part("AltUp's projections", 2 * (streams - 1) * hidden**2)
    return Decoder(layers, per_layer_embedding=tables, others=(mixing,))


def _global_heads(fields: Fields, mixer: Attention) -> Attention:
    """Heads of a global layer: null means that they are like the others."""
    if fields.has("per_layer_config"):  # says it of each layer
        dim = mixer.head_dim
    else:
        dim = fields.count_or("global_head_dim", _GLOBAL_HEAD_DIM)
    one = fields.flag("attention_k_eq_v", default=False)
    kv_heads = fields.optional_count("num_global_key_value_heads")
    return replace(
        mixer,
        head_dim=dim,
        num_kv_heads=kv_heads or mixer.num_kv_heads,
        kv_projection="one" if one else "separate",
    )


def _per_layer(fields: Fields) -> PerLayerEmbedding | None:
    size = _per_layer_size(fields)
    if not size:
        return None
    rows = fields.optional_count("vocab_size_per_layer_input") or fields.count("vocab_size")
    return PerLayerEmbedding(rows, size)


def _per_layer_size(fields: Fields) -> int:
    """Zero switches the second input table off; silence is the default."""
    if fields.has("hidden_size_per_layer_input"):
        return fields.number_or("hidden_size_per_layer_input", 0)
    return fields.count_or("hidden_size_per_layer_input", _PER_LAYER_SIZE)
