"""Mixtures of experts over attention with query and KV heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.catalog.families.expert_parts import experts, moe_layers, shared_experts
from core.catalog.families.family import Decoder
from core.catalog.families.llama import partly_rotated, qwen_kinds
from core.catalog.families.parts import (
    LAYER_NORM,
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
from core.catalog.model import RMS_NORM, Attention, FeedForward, Layer, MoE, Norm

Heads = Callable[[Fields, str], Attention]
Experts = Callable[[Fields], FeedForward]


def mixture(
    fields: Fields,
    names: list[str],
    heads: Heads,
    routed: Experts,
    plain: Experts = dense,
    *,
    norm: Norm = RMS_NORM,
) -> Decoder:
    """Layers with experts where the config has them, and a dense MLP elsewhere."""

    def layer(at: Fields, kind: tuple[str, bool]) -> Layer:
        mixer = spanned(at, heads(at, kind[0]), kind[0])
        return Layer(mixer, (routed if kind[1] else plain)(at), norm=norm)

    layers = stack(fields, list(zip(names, moe_layers(fields), strict=True)), layer)
    note_windows(fields, layers)
    return Decoder(layers, norm=norm)


def _full(fields: Fields) -> list[str]:
    return ["full"] * num_layers(fields)


def mixtral(fields: Fields) -> Decoder:
    """Mixtral: no biases; the experts' width is the config's intermediate size, their shares add up to 1."""
    bias = fields.flag("attention_bias", default=False)  # Granite
    return mixture(
        fields,
        kinds(fields, all_sliding),
        lambda at, _: attention(at, qkv_bias=bias, output_bias=bias),
        lambda at: replace(experts(at, key="intermediate_size"), normalised=True),
    )


def phimoe(fields: Fields) -> Decoder:
    """Phi-3.5-MoE: layer norms, biases on the attention and on the head."""
    bias = fields.flag("attention_bias", default=False)
    decoder = mixture(
        fields,
        kinds(fields, all_sliding),
        lambda at, _: attention(at, qkv_bias=bias, output_bias=bias),
        lambda at: experts(at, key="intermediate_size"),
        norm=LAYER_NORM,
    )
    return replace(decoder, head_bias=fields.flag("lm_head_bias", default=False))


def qwen2_moe(fields: Fields) -> Decoder:
    """Qwen1.5- and Qwen2-MoE: biases on Q, K and V; a shared expert behind a gate."""
    bias = fields.flag("qkv_bias", default=True)
    return mixture(fields, qwen_kinds(fields), lambda at, _: attention(at, qkv_bias=bias), gated_shared)


def gated_shared(fields: Fields) -> MoE:
    """Routed experts beside one shared expert with a gate of its own (Qwen)."""
    width = fields.number_or("shared_expert_intermediate_size", 0)
    routed = experts(fields)
    shared = replace(routed.expert, intermediate_size=width) if width else None
    return replace(routed, shared=shared, shared_gate=shared is not None)


def qwen3_moe(fields: Fields) -> Decoder:
    """Qwen3-MoE: a norm on each head's query and key, no shared expert."""
    bias = fields.flag("attention_bias", default=False)
    return mixture(
        fields,
        qwen_kinds(fields),
        lambda at, _: attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True),
        experts,
    )


def olmoe(fields: Fields) -> Decoder:
    """OLMoE: norms over all queries and all keys."""
    bias = fields.flag("attention_bias", default=False)

    def heads(at: Fields, _: str) -> Attention:
        mixer = attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True)
        return replace(mixer, qk_norm_values=mixer.query_features + mixer.kv_features)

    return mixture(fields, _full(fields), heads, lambda at: experts(at, key="intermediate_size"))


def glm4_moe(fields: Fields) -> Decoder:
    """GLM-4.5: a bias on Q, K and V, the first layers dense, a router with a bias."""
    bias = fields.flag("attention_bias", default=False)
    normed = fields.flag("use_qk_norm", default=False)
    part = fields.real("partial_rotary_factor", 0.5)
    return mixture(
        fields,
        _full(fields),
        lambda at, _: partly_rotated(attention(at, qkv_bias=bias, qk_norm=normed), part),
        biased_router,
    )


def dots1(fields: Fields) -> Decoder:
    """dots.llm1, Solar Open: norms on heads; the first layers dense, a router with a bias."""
    bias = fields.flag("attention_bias", default=False)
    return mixture(
        fields,
        kinds(fields, lambda _: "full"),
        lambda at, _: attention(at, qkv_bias=bias, output_bias=bias, qk_norm=True),
        biased_router,
    )


def biased_router(fields: Fields) -> MoE:
    """DeepSeek's experts: shared ones of the routed width, and a bias in the router."""
    routed = experts(fields, router="bias")
    return replace(routed, shared=shared_experts(fields, routed.expert.intermediate_size))


def deepseek_moe(fields: Fields) -> Decoder:
    """DeepSeek-MoE: the first layers dense, shared experts, a router without a bias."""
    bias = fields.flag("attention_bias", default=False)

    def routed(at: Fields) -> MoE:
        part = experts(at)
        return replace(part, shared=shared_experts(at, part.expert.intermediate_size))

    return mixture(
        fields, _full(fields), lambda at, _: attention(at, qkv_bias=bias, output_bias=bias), routed
    )


def minimax_m2(fields: Fields) -> Decoder:
    """MiniMax-M2: norms over all queries and all keys; the router's bias by a flag."""
    normed = fields.flag("use_qk_norm", default=True)
    biased = fields.flag("use_routing_bias", default=True)

    def heads(at: Fields, _: str) -> Attention:
        mixer = attention(at, qk_norm=normed)
        values = mixer.query_features + mixer.kv_features
        mixer = replace(mixer, qk_norm_values=values if normed else None)
        rotated = at.optional_count("rotary_dim")
        return replace(mixer, rotary_dim=rotated) if rotated else mixer

    return mixture(
        fields,
        _full(fields),
        heads,
        lambda at: experts(at, router="bias" if biased else "plain", key="intermediate_size"),
    )


def dbrx(fields: Fields) -> Decoder:
    """DBRX: attention and experts in tables of their own; layer norms without biases."""
    inner = fields.inside("attn_config", "ffn_config")
    norm = Norm("layer")
    layer = Layer(attention(inner), experts(inner, key="intermediate_size"), norm=norm)
    return Decoder((layer,) * num_layers(fields), norm=norm)


def gpt_oss(fields: Fields) -> Decoder:
    """gpt-oss: every second layer has a window; sinks; biases in attention, router and experts."""
    bias = fields.flag("attention_bias", default=True)

    def heads(at: Fields, _: str) -> Attention:
        return replace(attention(at, qkv_bias=bias, output_bias=bias), sinks=True)

    def routed(at: Fields) -> MoE:
        part = experts(at, router="bias", key="intermediate_size")
        return replace(part, expert=replace(part.expert, bias=True), expert_format="mxfp4")

    return mixture(fields, kinds(fields, every_nth(2)), heads, routed)


def llama4(fields: Fields) -> Decoder:
    """Llama 4: every fourth layer is global and without positions, the others attend within chunks.

    Queries and keys are normalised without trained weights. A shared expert is as wide as a routed one.
    """
    bias = fields.flag("attention_bias", default=False)
    every = fields.optional_count("no_rope_layer_interval") or 4
    flags = fields.counts("no_rope_layers")
    rotated = flags or [int((index + 1) % every != 0) for index in range(num_layers(fields))]
    names = kinds(fields, lambda index: "chunked" if rotated[index : index + 1] != [0] else "full")
    has_chunks = fields.has("attention_chunk_size")

    def heads(at: Fields, kind: str) -> Attention:
        mixer = attention(at, qkv_bias=bias, output_bias=bias)
        return mixer if kind == "chunked" or not has_chunks else replace(mixer, rotary_dim=0)

    def routed(at: Fields) -> MoE:
        part = experts(at, key="intermediate_size")
        return replace(part, shared=part.expert)

    return mixture(fields, names, heads, routed, lambda at: dense(at, key="intermediate_size_mlp"))


def mimo_v2(fields: Fields) -> Decoder:
    """MiMo-V2: keys wider than values, heads that differ between global and windowed layers, sinks."""

    def heads(at: Fields, kind: str) -> Attention:
        windowed = kind == "sliding" and not at.has("per_layer_config")
        keys = ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
        stated = (key for key in keys if at.has(f"swa_{key}") or f"swa_{key}" in at.defaults)
        sized = at.over({key: at.count(f"swa_{key}") for key in stated}) if windowed else at
        bias = at.flag("attention_bias", default=False)
        mixer = attention(sized, qkv_bias=bias)
        key = "add_swa_attention_sink_bias" if kind == "sliding" else "add_full_attention_sink_bias"
        return replace(
            mixer,
            value_dim=sized.optional_count("v_head_dim"),
            sinks=at.flag(key, default=kind == "sliding"),
        )

    return mixture(fields, kinds(fields, every_nth(6)), heads, biased_router)


def step3p5(fields: Fields) -> Decoder:
    """Step-3.5 and 3.7: norms on heads, a gate a head, windows by list, the first layers dense.

    Layers with a window may have another number of heads. A shared expert stands beside the others.
    """
    biased = fields.flag("use_moe_router_bias", default=True)
    gated = fields.flag("use_head_wise_attn_gate", default=True)
    other = fields.table("attention_other_setting")

    def heads(at: Fields, kind: str) -> Attention:
        mixer = attention(at, qk_norm=True)
        if kind == "sliding":
            number = at.optional_count("num_sliding_attention_heads")
            number = number or (other.optional_count("num_attention_heads") if other else None)
            mixer = replace(mixer, num_heads=number or mixer.num_heads)
        return replace(mixer, gate_features=mixer.num_heads if gated else 0)

    def routed(at: Fields) -> MoE:
        part = experts(at, router="bias" if biased else "plain")
        width = at.number_or("share_expert_dim", part.expert.intermediate_size)
        return replace(part, shared=replace(part.expert, intermediate_size=width) if width else None)

    return mixture(fields, kinds(fields, all_sliding), heads, routed)
