"""Newer dense decoders that differ from a Llama in a norm, an activation or a gate."""

from __future__ import annotations

from dataclasses import replace

from core.catalog.families.family import Decoder
from core.catalog.families.llama import llama
from core.catalog.families.parts import (
    LAYER_NORM,
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
from core.catalog.model import Layer, Norm, Part


def apertus(fields: Fields) -> Decoder:
    """Apertus: norms on heads, an MLP without a gate, and two trained values in its activation."""
    bias = fields.flag("attention_bias", default=False)
    values = (Part("the activation's slopes", 2),)

    def layer(at: Fields, _: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True)
        mlp = dense(at, bias=at.flag("mlp_bias", default=False), gated=False)
        return Layer(mixer, mlp, others=values)

    return Decoder(stack(fields, ["full"] * num_layers(fields), layer))


def bitnet(fields: Fields) -> Decoder:
    """BitNet: a Llama with another norm before the last matrix of each part."""
    decoder = llama(fields)

    def normed(layer: Layer) -> Layer:
        width = layer.attention.output_features + layer.mlp.intermediate_size
        return replace(layer, others=(Part("norms within the parts", width),))

    made = {layer: normed(layer) for layer in dict.fromkeys(decoder.layers)}
    return replace(decoder, layers=tuple(made[layer] for layer in decoder.layers))


def nanochat(fields: Fields) -> Decoder:
    """nanochat: norms without trained values, on heads too, and an MLP without a gate."""
    norm = Norm(weight=False)
    bias = fields.flag("attention_bias", default=False)

    def layer(at: Fields, _: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True)
        return Layer(replace(mixer, qk_norm_values=0), dense(at, gated=False), norm=norm)

    return Decoder(stack(fields, ["full"] * num_layers(fields), layer), norm=norm)


def vaultgemma(fields: Fields) -> Decoder:
    """VaultGemma: Gemma 2 without the norms after each part."""
    bias = fields.flag("attention_bias", default=False)

    def layer(at: Fields, kind: str) -> Layer:
        mixer = attention(at, qkv_bias=bias, output_bias=bias)
        return Layer(spanned(at, mixer, kind), dense(at))

    layers = stack(fields, kinds(fields, every_nth(2)), layer)
    note_windows(fields, layers)
    return Decoder(layers)


def persimmon(fields: Fields) -> Decoder:
    """Persimmon, Fuyu: layer norms, on heads too, biases everywhere, an MLP without a gate."""
    mixer = attention(fields, qkv_bias=True, output_bias=True)
    if fields.flag("qk_layernorm", default=True):
        mixer = replace(mixer, qk_norm=True, qk_norm_values=4 * mixer.head_dim)
    part = fields.real("partial_rotary_factor", 0.5)
    mixer = replace(mixer, rotary_dim=int(mixer.head_dim * min(part, 1.0)))
    layer = Layer(mixer, dense(fields, bias=True, gated=False), norm=LAYER_NORM)
    return Decoder((layer,) * num_layers(fields), norm=LAYER_NORM)


def diffllama(fields: Fields) -> Decoder:
    """Differential attention: a Llama with four vectors a layer that weigh one attention map off another."""
    decoder = llama(fields)

    def weighed(layer: Layer) -> Layer:
        return replace(layer, others=(Part("weights of the second map", 4 * layer.attention.head_dim),))

    made = {layer: weighed(layer) for layer in dict.fromkeys(decoder.layers)}
    return replace(decoder, layers=tuple(made[layer] for layer in decoder.layers))
