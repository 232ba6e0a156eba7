"""Newer mixtures of experts: ERNIE 4.5, Ling, Hunyuan, Trinity, EXAONE MoE, FlexOlmo, shared Granite."""

from __future__ import annotations

from dataclasses import replace

from core.catalog.families.expert_parts import experts
from core.catalog.families.family import Decoder
from core.catalog.families.llama import POST_NORMS, SANDWICH_NORMS, has_window
from core.catalog.families.mixtures import biased_router, mixture, olmoe
from core.catalog.families.parts import all_full, attention, dense, every_nth, kinds, num_layers
from core.catalog.fields import Fields
from core.catalog.model import Attention, Layer, MoE
from core.errors import ConfigError


def _full(fields: Fields) -> list[str]:
    return ["full"] * num_layers(fields)


def ernie4_5_moe(fields: Fields) -> Decoder:
    """ERNIE 4.5 with experts: between a first and a last layer, every so many; a bias in the router."""
    bias = fields.flag("use_bias", default=False)
    layers = num_layers(fields)
    first = fields.quiet_number("moe_layer_start_index", 1)
    last = _last(fields, layers)
    every = fields.optional_count("moe_layer_interval") or 1
    sparse = [first <= index <= last and (index + 1) % every == 0 for index in range(layers)]
    named = fields.over({"mlp_layer_types": ["sparse" if one else "dense" for one in sparse]})

    def routed(at: Fields) -> MoE:
        part = biased_router(at)
        return replace(part, shared=replace(part.shared, bias=bias) if part.shared else None)

    decoder = mixture(
        named,
        _full(fields),
        lambda at, _: attention(at, qkv_bias=bias, output_bias=bias),
        routed,
        lambda at: dense(at, bias=bias),
    )
    return replace(decoder, head_bias=bias)


def _last(fields: Fields, layers: int) -> int:
    """The last layer with experts; -1 is the last there is."""
    stated = fields.value("moe_layer_end_index")
    if stated is None or stated == -1:
        return layers - 1
    return fields.quiet_number("moe_layer_end_index", layers - 1)


def bailing_moe(fields: Fields) -> Decoder:
    """Ling and Ring: the first layers dense, shared experts; norms on heads and a router's bias by flags."""
    bias, output = fields.flag("use_qkv_bias", default=False), fields.flag("use_bias", default=False)
    normed = fields.flag("use_qk_norm", default=False)
    biased = fields.flag("moe_router_enable_expert_bias", default=False)

    def routed(at: Fields) -> MoE:
        part = biased_router(at)
        return part if biased else replace(part, router_values=0)

    return mixture(
        fields,
        _full(fields),
        lambda at, _: attention(at, qkv_bias=bias or output, output_bias=output, qk_norm=normed),
        routed,
        lambda at: dense(at, bias=output),
    )


def hunyuan_moe(fields: Fields) -> Decoder:
    """Hunyuan-A13B: norms on heads, and one shared expert as wide as a routed one.

    Numbers that stand in lists, one a layer, must be the same in all of them.
    """
    bias = fields.flag("attention_bias", default=False)
    normed = fields.flag("use_qk_norm", default=True)
    keys = ("num_experts_per_tok", "moe_intermediate_size", "num_shared_expert", "num_experts")
    even = fields.over({key: _same(fields, key) for key in keys if isinstance(fields.value(key), list)})
    key = "moe_intermediate_size" if even.has("moe_intermediate_size") else "intermediate_size"
    number = even.quiet_number("num_shared_expert", 1) if even.flag("use_mixed_mlp_moe", default=True) else 0

    def routed(at: Fields) -> MoE:
        part = experts(at, key=key)
        width = number * part.expert.intermediate_size
        return replace(part, shared=replace(part.expert, intermediate_size=width) if width else None)

    return mixture(
        even,
        _full(fields),
        lambda at, _: attention(at, qkv_bias=bias, output_bias=bias, qk_norm=normed),
        routed,
    )


def _same(fields: Fields, key: str) -> int:
    """The one number of a list that has one a layer."""
    found = set(fields.counts(key) or [])
    if len(found) != 1:
        raise ConfigError(f"{key} must be the same in every layer; got {len(found)} numbers. Choose one.")
    return found.pop()


def afmoe(fields: Fields) -> Decoder:
    """Trinity: windows but every fourth layer, an output gate, norms around parts, first layers dense."""
    every = fields.optional_count("global_attn_every_n_layers") or 4

    def heads(at: Fields, _: str) -> Attention:
        mixer = attention(at, qk_norm=True)
        return replace(mixer, gate_features=mixer.query_features)

    first = fields.quiet_number("num_dense_layers", 1)
    made = mixture(
        fields.over({"first_k_dense_replace": first}), kinds(fields, every_nth(every)), heads, biased_router
    )
    return _with_norms(made, SANDWICH_NORMS)


def exaone_moe(fields: Fields) -> Decoder:
    """EXAONE with experts: norms on heads, windows but every fourth layer, the first layers dense."""
    default = every_nth(4) if has_window(fields) else all_full
    return mixture(fields, kinds(fields, default), lambda at, _: attention(at, qk_norm=True), biased_router)


def flex_olmo(fields: Fields) -> Decoder:
    """FlexOlmo: OLMoE with its norms after each part."""
    return _with_norms(olmoe(fields), POST_NORMS)


def granite_shared(fields: Fields) -> Decoder:
    """Granite 3 with experts and a shared MLP beside them."""
    bias = fields.flag("attention_bias", default=False)
    width = fields.quiet_number("shared_intermediate_size", 0)

    def routed(at: Fields) -> MoE:
        part = experts(at, key="intermediate_size")
        return replace(part, shared=replace(part.expert, intermediate_size=width) if width else None)

    return mixture(
        fields, _full(fields), lambda at, _: attention(at, qkv_bias=bias, output_bias=bias), routed
    )


def _with_norms(decoder: Decoder, norms: tuple[str, ...]) -> Decoder:
    made: dict[Layer, Layer] = {layer: replace(layer, norms=norms) for layer in dict.fromkeys(decoder.layers)}
    return replace(decoder, layers=tuple(made[layer] for layer in decoder.layers))
