"""State spaces and linear attention, alone or between layers of attention."""

from __future__ import annotations

from dataclasses import replace

from core.catalog.families.expert_parts import experts, moe_layers
from core.catalog.families.family import Decoder
from core.catalog.families.parts import attention, dense, kinds, listed_kinds, num_layers, stack
from core.catalog.fields import Fields
from core.catalog.model import (
    DenseMLP,
    Layer,
    Mamba,
    Mamba2,
    Mixer,
    MoE,
)
from core.errors import ConfigError

_MIXER_NORMS = ("mixer_norm", "mlp_norm")
_ONE_NORM = ("mixer_norm",)


def mamba(fields: Fields) -> Decoder:
    """Mamba 1: a state space in each layer and nothing else."""
    hidden = fields.count("hidden_size")
    expand = fields.optional_count("expand") or 2
    inner = fields.optional_count("intermediate_size") or fields.whole("expand", expand * hidden, least=1)
    mixer = Mamba(
        inner_size=inner,
        state_size=fields.optional_count("state_size") or fields.optional_count("ssm_state_size") or 16,
        time_rank=_time_rank(fields, "time_step_rank"),
        kernel=fields.optional_count("conv_kernel") or 4,
        conv_bias=fields.flag("use_conv_bias", default=True),
        bias=fields.flag("use_bias", default=False),
    )
    return Decoder((Layer(mixer, None, _ONE_NORM),) * num_layers(fields), positions="none")


def _time_rank(fields: Fields, key: str) -> int:
    """A sixteenth of the width, rounded up, where the config says "auto" or nothing."""
    value = fields.value(key)
    if value is None or value == "auto":
        return -(-fields.count("hidden_size") // 16)
    return fields.count(key)


def mamba2(fields: Fields) -> Decoder:
    """Mamba 2: a state space with heads in each layer and nothing else."""
    layer = Layer(_mamba2(fields, fields), None, _ONE_NORM)
    return Decoder((layer,) * num_layers(fields), positions="none")


def _mamba2(fields: Fields, at: Fields, prefix: str = "") -> Mamba2:
    """The heads of a Mamba 2 layer; hybrids put "mamba_" before the names."""

    def first(*names: str, default: int) -> int:
        return next((found for name in names if (found := at.optional_count(name))), default)

    hidden, dim = (
        fields.count("hidden_size"),
        first(prefix + "d_head", "mamba_head_dim", "head_dim", default=64),
    )
    expand = first(prefix + "expand", "expand", default=2)
    heads = first(prefix + "n_heads", "mamba_num_heads", "num_heads", default=max(expand * hidden // dim, 1))
    return Mamba2(
        num_heads=heads,
        head_dim=dim,
        state_size=first(prefix + "d_state", "ssm_state_size", "state_size", default=128),
        num_groups=first(prefix + "n_groups", "n_groups", default=8 if not prefix else 1),
        kernel=first(prefix + "d_conv", "conv_kernel", default=4),
        conv_bias=at.flag("mamba_conv_bias", default=at.flag("use_conv_bias", default=True)),
        bias=at.flag("mamba_proj_bias", default=False) or at.flag("use_bias", default=False),
    )


def jamba(fields: Fields) -> Decoder:
    """Jamba: attention without positions every ``attn_layer_period`` layers, Mamba 1 in the others."""
    period, offset = fields.count("attn_layer_period"), fields.number_or("attn_layer_offset", 0)
    names = ["full" if index % period == offset else "mamba" for index in range(num_layers(fields))]
    sparse = moe_layers(fields) if fields.count("num_experts") > 1 else [False] * len(names)
    mixers: dict[str, Mixer] = {"full": attention(fields, rotary=False), "mamba": _jamba_mamba(fields)}

    def layer(at: Fields, kind: tuple[str, bool]) -> Layer:
        part = experts(at, key="intermediate_size") if kind[1] else dense(at)
        return Layer(mixers[kind[0]], part, _MIXER_NORMS)

    return Decoder(stack(fields, list(zip(names, sparse, strict=True)), layer), positions="none")


def _jamba_mamba(fields: Fields) -> Mamba:
    hidden = fields.count("hidden_size")
    inner = fields.whole("mamba_expand", (fields.optional_count("mamba_expand") or 2) * hidden, least=1)
    return Mamba(
        inner_size=inner,
        state_size=fields.optional_count("mamba_d_state") or 16,
        time_rank=_time_rank(fields, "mamba_dt_rank"),
        kernel=fields.optional_count("mamba_d_conv") or 4,
        conv_bias=fields.flag("mamba_conv_bias", default=True),
        bias=fields.flag("mamba_proj_bias", default=False),
        inner_norms=True,
    )


#: The letters of Nemotron-H's pattern.
_LETTERS = {"M": "mamba", "*": "full", "-": "mlp", "E": "moe"}


def nemotron_h(fields: Fields) -> Decoder:
    """Nemotron-H and Nemotron 3: each layer is one part alone, by the letters of a pattern.

    M is Mamba 2, * attention without positions, - an MLP without a gate, E experts.
    """
    names = _pattern(fields)

    def layer(at: Fields, kind: str) -> Layer:
        if kind == "mamba":
            return Layer(_mamba2(fields, at), None, _ONE_NORM)
        if kind == "full":
            bias = at.flag("attention_bias", default=False)
            return Layer(attention(at, qkv_bias=bias, output_bias=bias, rotary=False), None, _ONE_NORM)
        if kind == "mlp":
            return Layer(None, _relu2(at, "intermediate_size"), ("mlp_norm",))
        return Layer(None, _nemotron_experts(at), ("mlp_norm",))

    return Decoder(stack(fields, names, layer), positions="none")


def _pattern(fields: Fields) -> list[str]:
    text = fields.text("hybrid_override_pattern")
    listed = fields.texts("layers_block_type") or fields.texts("layer_types")
    stated = fields.optional_count("num_hidden_layers")
    layers = stated or len(text or listed or ()) or num_layers(fields)
    if text is None and listed is not None:
        renamed = ["mamba" if name == "linear_attention" else name for name in listed]
        return listed_kinds("layers_block_type", renamed, layers)
    if text is None:
        raise ConfigError(
            "The config must state hybrid_override_pattern; it is missing or null. Paste the whole file."
        )
    if len(text) != layers or not set(text) <= set(_LETTERS):
        raise ConfigError(
            f"hybrid_override_pattern must have one of {' '.join(_LETTERS)} a layer; got {text[:60]!r} for "
            f"{layers:,} layers. Correct the config."
        )
    return [_LETTERS[letter] for letter in text]


def _relu2(fields: Fields, key: str) -> DenseMLP:
    mlp = dense(fields, bias=fields.flag("mlp_bias", default=False), gated=False, key=key)
    return replace(mlp, activation="relu2")


def _nemotron_experts(fields: Fields) -> MoE:
    routed = experts(fields)
    expert = _relu2(fields, "moe_intermediate_size")
    width = (
        fields.number_or("moe_shared_expert_intermediate_size", 0)
        if fields.number_or("n_shared_experts", 1)
        else 0
    )
    shared = replace(expert, intermediate_size=width) if width else None
    return replace(routed, expert=expert, shared=shared, latent_size=fields.optional_count("moe_latent_size"))


def granite_hybrid(fields: Fields) -> Decoder:
    """Granite 4: Mamba 2 and attention by list, each before a shared MLP and, mostly, experts."""
    names = kinds(fields, lambda _: "mamba")
    has_experts = fields.number_or("num_experts", 0) > 0
    bias = fields.flag("attention_bias", default=False)
    rotary = fields.text("position_embedding_type") == "rope"

    def layer(at: Fields, kind: str) -> Layer:
        shared = dense(at, key="shared_intermediate_size")
        part = experts(at, key="intermediate_size", shared=shared) if has_experts else shared
        heads = attention(at, qkv_bias=bias, output_bias=bias, rotary=rotary)
        return Layer(heads if kind == "full" else _mamba2(fields, at, "mamba_"), part, _MIXER_NORMS)

    return Decoder(stack(fields, names, layer), positions="rotary" if rotary else "none")


def bamba(fields: Fields) -> Decoder:
    """Bamba: attention in the layers that are listed, Mamba 2 in the others, an MLP after each."""
    chosen = set(fields.counts("attn_layer_indices") or [])
    names = ["full" if index in chosen else "mamba" for index in range(num_layers(fields))]
    bias = fields.flag("attention_bias", default=False)

    def layer(at: Fields, kind: str) -> Layer:
        heads = attention(at, qkv_bias=bias, output_bias=bias)
        mlp = dense(at, bias=at.flag("mlp_bias", default=False))
        return Layer(_mamba2(fields, at, "mamba_") if kind == "mamba" else heads, mlp, _MIXER_NORMS)

    return Decoder(stack(fields, names, layer))


def falcon_h1(fields: Fields) -> Decoder:
    """Falcon-H1: in each layer attention and Mamba 2 side by side, then an MLP.

    Raises:
        ConfigError: only one of the state space's two projections has a bias.
    """
    bias = fields.flag("attention_bias", default=False)
    mlp_bias = fields.flag("mlp_bias", default=False)

    def layer(at: Fields, _: str) -> Layer:
        heads = attention(at, qkv_bias=bias, output_bias=bias)
        mlp = dense(at, bias=mlp_bias)
        return Layer(replace(heads, beside=_falcon_mamba(at)), mlp, _MIXER_NORMS)

    return Decoder(stack(fields, ["full"] * num_layers(fields), layer))


def _falcon_mamba(fields: Fields) -> Mamba2:
    expand, hidden = fields.optional_count("mamba_expand") or 2, fields.count("hidden_size")
    inner = fields.optional_count("mamba_d_ssm") or expand * hidden
    heads = fields.count("mamba_n_heads")
    if inner % heads:
        raise ConfigError(
            f"mamba_n_heads must divide mamba_d_ssm; got {heads:,} and {inner:,}. Correct the config."
        )
    first = fields.flag("mamba_proj_bias", default=False)
    if first != fields.flag("projectors_bias", default=False):
        raise ConfigError(
            "mamba_proj_bias and projectors_bias must be equal; a state space with a bias on one projection "
            "alone cannot be counted yet. Choose another model."
        )
    state = _mamba2(fields, fields.over({"mamba_d_head": inner // heads}), "mamba_")
    return replace(state, bias=first, gated_norm=fields.flag("mamba_rms_norm", default=False))
