"""Llama and its relatives: attention, then a gated MLP, with RMS norms before both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from core.catalog.families.family import Decoder
from core.catalog.families.parts import (
    LAYER_NORM,
    all_full,
    all_sliding,
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
from core.catalog.model import RMS_NORM, Attention, Layer, Norm

_Heads = Callable[[Fields], Attention]
_Pattern = Callable[[int], str]

#: Norms after each part (OLMo 2, EXAONE 4), and before and after it (GLM-4).
POST_NORMS: Final = ("post_attention_norm", "post_mlp_norm")
SANDWICH_NORMS: Final = ("attention_norm", "post_attention_norm", "mlp_norm", "post_mlp_norm")


def llama(fields: Fields) -> Decoder:
    """Llama: one flag puts a bias on all four attention projections, another on the MLP.

    Its kin may list layers with a window.
    """
    both = fields.flag("use_bias", default=False)  # ERNIE has one flag for all
    bias = fields.flag("attention_bias", default=fields.flag("bias", default=both))
    mlp_bias = fields.flag("mlp_bias", default=both)

    def layer(at: Fields, kind: str) -> Layer:
        mixer = spanned(at, attention(at, qkv_bias=bias, output_bias=bias), kind)
        return Layer(mixer, dense(at, bias=mlp_bias))

    layers = stack(fields, kinds(fields, all_full), layer)
    note_windows(fields, layers)
    return Decoder(layers)


def mistral(fields: Fields) -> Decoder:
    """Mistral: no biases; a sliding window, where one is stated, holds on every layer."""
    return _windowed(fields, ["sliding"] * num_layers(fields))


def ministral(fields: Fields) -> Decoder:
    """Ministral, Mellum: a window on the layers that are listed, or on all."""
    return _windowed(fields, kinds(fields, all_sliding))


def _windowed(fields: Fields, names: list[str]) -> Decoder:
    layers = stack(fields, names, lambda at, kind: Layer(spanned(at, attention(at), kind), dense(at)))
    note_windows(fields, layers)
    return Decoder(layers)


def qwen2(fields: Fields) -> Decoder:
    """Qwen2 and 2.5: biases on Q, K and V alone; windows only where use_sliding_window says so."""
    return _qwen(fields, lambda at: attention(at, qkv_bias=True))


def qwen3(fields: Fields) -> Decoder:
    """Qwen3 dense: a norm on each head's query and key; one flag for the attention's biases."""
    bias = fields.flag("attention_bias", default=False)
    return _qwen(fields, lambda at: attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True))


def _qwen(fields: Fields, heads: _Heads) -> Decoder:
    layers = stack(
        fields, qwen_kinds(fields), lambda at, kind: Layer(spanned(at, heads(at), kind), dense(at))
    )
    note_windows(fields, layers)
    return Decoder(layers)


def has_window(fields: Fields) -> bool:
    """Whether there is a window at all: stated, or the model type's where the file does not mention it."""
    return fields.has("sliding_window") or (
        "sliding_window" not in fields.values and "sliding_window" in fields.defaults
    )


def qwen_kinds(fields: Fields) -> list[str]:
    """Windows from max_window_layers on, or as layer_types lists them, if they are switched on."""
    layers = num_layers(fields)
    if not fields.flag("use_sliding_window", default=fields.has("layer_types")):
        return ["full"] * layers
    first = fields.optional_count("max_window_layers") or layers
    return kinds(fields, lambda index: "sliding" if index >= first else "full")


def phi3(fields: Fields) -> Decoder:
    """Phi-3 and Phi-4: fused projections without biases; a window on every layer where one is stated."""
    decoder = mistral(fields)
    factor = fields.real("partial_rotary_factor", 1.0)
    return decoder if factor == 1 else _partly_rotated(decoder, factor)


def _partly_rotated(decoder: Decoder, factor: float) -> Decoder:
    def turned(layer: Layer) -> Layer:
        if not isinstance(layer.mixer, Attention):
            return layer
        return replace(layer, mixer=partly_rotated(layer.mixer, factor))

    made = {layer: turned(layer) for layer in dict.fromkeys(decoder.layers)}
    return replace(decoder, layers=tuple(made[layer] for layer in decoder.layers))


def partly_rotated(mixer: Attention, factor: float) -> Attention:
    """Attention of which only this share of each head is rotated."""
    return replace(mixer, rotary_dim=int(mixer.head_dim * min(factor, 1.0)))


def qkv_biased(fields: Fields) -> Decoder:
    """GLM and Seed-OSS: a bias on Q, K and V; on the output only where a flag of its own says so."""
    bias = fields.flag("attention_bias", default=False)
    output = fields.flag("attention_out_bias", default=False)
    mlp_bias = fields.flag("mlp_bias", default=False)
    factor = fields.real("partial_rotary_factor", 1.0)

    def layer(at: Fields, _: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=output)
        return Layer(partly_rotated(mixer, factor) if factor < 1 else mixer, dense(at, bias=mlp_bias))

    return Decoder(stack(fields, ["full"] * num_layers(fields), layer))


def glm4(fields: Fields) -> Decoder:
    """GLM-4-0414: as GLM, with a norm before and after each part."""
    return with_norms(qkv_biased(fields), SANDWICH_NORMS)


def glm4v(fields: Fields) -> Decoder:
    """GLM-4.1V: GLM-4 whose queries, keys and values always have a bias."""
    return glm4(fields.over({"attention_bias": True}))


def with_norms(decoder: Decoder, norms: tuple[str, ...], norm: Norm = RMS_NORM) -> Decoder:
    """The same decoder with other norms in each layer."""
    made = {layer: replace(layer, norms=norms, norm=norm) for layer in dict.fromkeys(decoder.layers)}
    return replace(decoder, layers=tuple(made[layer] for layer in decoder.layers), norm=norm)


def olmo(fields: Fields) -> Decoder:
    """OLMo 1: Llama whose layer norms have no trained values."""
    return with_norms(llama(fields), ("attention_norm", "mlp_norm"), Norm("layer", weight=False))


def olmo2(fields: Fields) -> Decoder:
    """OLMo 2 and 3: norms after each part, and one over all queries and all keys; OLMo 3 has windows."""
    bias = fields.flag("attention_bias", default=False)
    default = every_nth(4) if has_window(fields) else all_full

    def layer(at: Fields, kind: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True)
        wide = replace(mixer, qk_norm_values=mixer.query_features + mixer.kv_features)
        return Layer(spanned(at, wide, kind), dense(at), POST_NORMS)

    layers = stack(fields, kinds(fields, default), layer)
    note_windows(fields, layers)
    return Decoder(layers)


def exaone4(fields: Fields) -> Decoder:
    """EXAONE 4: norms after each part and on each head; three windows to one global layer, if any."""
    default = every_nth(4) if has_window(fields) else all_full

    def layer(at: Fields, kind: str) -> Layer:
        return Layer(spanned(at, attention(at, qk_norm=True), kind), dense(at), POST_NORMS)

    layers = stack(fields, kinds(fields, default), layer)
    note_windows(fields, layers)
    return Decoder(layers)


def cohere(fields: Fields) -> Decoder:
    """Command R: one layer norm without bias before attention and MLP, which run side by side."""
    return _cohere(fields, all_full)


def cohere2(fields: Fields) -> Decoder:
    """Command R7B and A: the same, with three windows to one global layer."""
    return _cohere(fields, every_nth(4))


def _cohere(fields: Fields, default: _Pattern) -> Decoder:
    bias = fields.flag("attention_bias", default=False)
    normed = fields.flag("use_qk_norm", default=False)
    norm = Norm("layer")

    def layer(at: Fields, kind: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias, qk_norm=normed)
        if normed:  # each head has weights of its own
            mixer = replace(mixer, qk_norm_values=mixer.query_features + mixer.kv_features)
        return Layer(spanned(at, mixer, kind), dense(at), ("attention_norm",), norm, parallel=True)

    layers = stack(fields, kinds(fields, default), layer)
    note_windows(fields, layers)
    return Decoder(layers, norm=norm)


def starcoder2(fields: Fields) -> Decoder:
    """StarCoder 2: layer norms, biases everywhere, a plain MLP, a window on every layer if stated."""
    bias = fields.flag("use_bias", default=True)

    def layer(at: Fields, kind: str) -> Layer:
        mixer = spanned(at, attention(at, qkv_bias=bias, output_bias=bias), kind)
        return Layer(mixer, dense(at, bias=bias, gated=False), norm=LAYER_NORM)

    layers = stack(fields, kinds(fields, all_sliding), layer)
    note_windows(fields, layers)
    return Decoder(layers, norm=LAYER_NORM)


def nemotron(fields: Fields) -> Decoder:
    """Nemotron 3 and 4, Minitron: layer norms, and an MLP without a gate."""
    return _ungated(fields, LAYER_NORM)


def arcee(fields: Fields) -> Decoder:
    """Arcee: Llama with an MLP without a gate."""
    return _ungated(fields, RMS_NORM)


def _ungated(fields: Fields, norm: Norm) -> Decoder:
    bias = fields.flag("attention_bias", default=False)
    mlp_bias = fields.flag("mlp_bias", default=False)

    def layer(at: Fields, _: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias)
        return Layer(mixer, dense(at, bias=mlp_bias, gated=False), norm=norm)

    return Decoder(stack(fields, ["full"] * num_layers(fields), layer), norm=norm)


def stablelm(fields: Fields) -> Decoder:
    """StableLM: layer norms; a bias on Q, K and V by a flag; one norm a layer where parts are parallel."""
    bias = fields.flag("use_qkv_bias", default=False)
    parallel = fields.flag("use_parallel_residual", default=False)
    normed = fields.flag("qk_layernorm", default=False)
    norms = ("attention_norm",) if parallel else ("attention_norm", "mlp_norm")

    def layer(at: Fields, _: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, qk_norm=normed)
        if normed:  # each head has weights of its own
            mixer = replace(mixer, qk_norm_values=mixer.query_features + mixer.kv_features)
        return Layer(mixer, dense(at), norms, LAYER_NORM, parallel)

    return Decoder(stack(fields, ["full"] * num_layers(fields), layer), norm=LAYER_NORM)
