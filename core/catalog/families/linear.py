"""Linear attention and short convolutions between layers of attention: Qwen3-Next, Kimi Linear, LFM2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.catalog.families.expert_parts import experts, moe_layers
from core.catalog.families.family import Decoder
from core.catalog.families.latent import latent_attention
from core.catalog.families.mixtures import biased_router, gated_shared
from core.catalog.families.parts import attention, dense, every_nth, kinds, num_layers, one_each, stack
from core.catalog.fields import Fields
from core.catalog.model import Attention, DenseMLP, Layer, LinearAttention, Mixer, MoE, ShortConvolution
from core.errors import ConfigError

_Part = Callable[[Fields, int], DenseMLP | MoE]
_MIXER_NORMS = ("mixer_norm", "mlp_norm")


def qwen3_next(fields: Fields) -> Decoder:
    """Qwen3-Next and Qwen3.5 with experts: three gated delta nets to one attention with an output gate."""
    sparse = moe_layers(fields)
    return _gated_delta(fields, lambda at, index: gated_shared(at) if sparse[index] else dense(at))


def qwen3_5(fields: Fields) -> Decoder:
    """Qwen3.5 dense: the same with an MLP in every layer."""
    return _gated_delta(fields, lambda at, _: dense(at))


def _gated_delta(fields: Fields, part: _Part) -> Decoder:
    every = fields.optional_count("full_attention_interval") or 4
    names = kinds(fields, every_nth(every, "linear"))
    bias = fields.flag("attention_bias", default=False)
    made: dict[tuple[str, DenseMLP | MoE], Layer] = {}

    def layer(at: Fields, kind: str, index: int) -> Layer:
        mlp = part(at, index)
        if (kind, mlp) not in made:
            mixer: Mixer = _gated_attention(at, bias=bias) if kind != "linear" else _delta_net(at)
            made[kind, mlp] = Layer(mixer, mlp, _MIXER_NORMS)
        return made[kind, mlp]

    return Decoder(tuple(layer(fields, name, index) for index, name in enumerate(names)))


def _gated_attention(fields: Fields, *, bias: bool) -> Attention:
    mixer = attention(fields, qkv_bias=bias, output_bias=bias, qk_norm=True)
    gated = fields.flag("attn_output_gate", default=True)
    return replace(mixer, gate_features=mixer.query_features if gated else 0)


def _delta_net(fields: Fields) -> LinearAttention:
    values = fields.count("linear_value_head_dim")
    return LinearAttention(
        num_key_heads=fields.count("linear_num_key_heads"),
        num_value_heads=fields.count("linear_num_value_heads"),
        key_dim=fields.count("linear_key_head_dim"),
        value_dim=values,
        kernel=fields.count("linear_conv_kernel_dim"),
        norm_size=values,
    )


def kimi_linear(fields: Fields) -> Decoder:
    """Kimi Linear and K3: Kimi delta attention in the layers that are listed, latent attention elsewhere."""
    delta, linear = _kimi_layers(fields)
    latent = latent_attention(fields)
    if fields.flag("mla_use_output_gate", default=False):
        latent = replace(latent, gate_features=latent.output_features)
    routed = replace(biased_router(fields), latent_size=fields.optional_count("routed_expert_hidden_size"))
    if routed.latent_size:
        fields.notes.append(
            "The config does not tell everything about this family's experts and residuals; what it "
            "does not tell is not counted."
        )

    def layer(at: Fields, kind: tuple[bool, bool]) -> Layer:
        return Layer(delta if kind[0] else latent, routed if kind[1] else dense(at), _MIXER_NORMS)

    return Decoder(stack(fields, list(zip(linear, moe_layers(fields), strict=True)), layer))


def _kimi_layers(fields: Fields) -> tuple[LinearAttention, list[bool]]:
    """The delta attention and which layers have it: a table of its own, or keys of newer files."""
    table = fields.table("linear_attn_config")
    if table is not None and table.has("kda_layers"):
        chosen = set(table.counts("kda_layers") or [])  # numbered from one
        delta = _kimi_delta(table, "num_attention_heads", "head_dim", "short_conv_kernel_size")
        return delta, [index + 1 in chosen for index in range(num_layers(fields))]
    if not fields.has("linear_num_heads"):
        raise ConfigError(
            "The config must state linear_attn_config with its kda_layers; they are missing or null. "
            "Paste the whole file."
        )
    delta = _kimi_delta(fields, "linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")
    return delta, [name == "linear" for name in kinds(fields, every_nth(4, "linear"))]


def _kimi_delta(table: Fields, number: str, width: str, taps: str) -> LinearAttention:
    heads, dim, kernel = table.count(number), table.count(width), table.count(taps)
    full = table.flag("use_full_rank_gate", default=False)
    return LinearAttention(
        heads, heads, dim, dim, kernel, "channel", gate_rank=None if full else dim, norm_size=dim
    )


def minimax_text(fields: Fields) -> Decoder:
    """MiniMax-Text-01 and M1: lightning attention, softmax attention every eighth layer, experts."""
    flags = fields.counts("attn_type_list")
    if flags is None:
        names = kinds(fields, every_nth(8, "linear"))
    else:
        one_each("attn_type_list", flags, num_layers(fields))
        names = ["full" if flag else "linear" for flag in flags]
    heads = attention(fields)
    lightning = LinearAttention(
        heads.num_heads,
        heads.num_heads,
        heads.head_dim,
        heads.head_dim,
        kernel=0,
        decay="fixed",
        norm_size=heads.query_features,
    )
    part = experts(fields, key="intermediate_size")
    return Decoder(
        tuple(Layer(lightning if name == "linear" else heads, part, _MIXER_NORMS) for name in names)
    )


def recurrent_gemma(fields: Fields) -> Decoder:
    """RecurrentGemma: gated linear recurrences, and attention with a window where ``block_types`` has it.

    The kinds repeat over the layers. The stated width is that of both halves of the MLP together.
    """
    pattern = fields.texts("block_types") or ["recurrent", "recurrent", "attention"]
    if not set(pattern) <= {"recurrent", "attention"}:
        raise ConfigError(
            f"block_types must name recurrent and attention alone; got {', '.join(pattern)[:60]}. "
            "Correct the config."
        )
    blocks = fields.count("num_attention_heads")
    width = fields.optional_count("lru_width") or fields.count("hidden_size")
    if width % blocks:
        raise ConfigError(
            f"num_attention_heads must divide lru_width; got {blocks:,} and {width:,}. Correct the config."
        )
    short = ShortConvolution(
        width, fields.optional_count("conv1d_width") or 4, bias=True, recurrence_blocks=blocks
    )
    heads = attention(fields, qkv_bias=fields.flag("attention_bias", default=False), output_bias=True)
    heads = replace(
        heads,
        window=fields.optional_count("attention_window_size") or 2048,
        rotary_dim=int(heads.head_dim * min(fields.real("partial_rotary_factor", 0.5), 1.0)),
    )
    mlp = dense(fields, bias=True)
    mlp = replace(mlp, intermediate_size=max(mlp.intermediate_size // 2, 1))
    names = [pattern[index % len(pattern)] for index in range(num_layers(fields))]
    return Decoder(
        stack(
            fields, names, lambda _, kind: Layer(short if kind == "recurrent" else heads, mlp, _MIXER_NORMS)
        )
    )


def lfm2(fields: Fields) -> Decoder:
    """LFM2: short convolutions, attention in some layers, an MLP (or experts) after each."""
    chosen = fields.counts("full_attn_idxs")
    names = kinds(fields, lambda index: "full" if chosen is None or index in chosen else "conv")
    first = fields.number_or("num_dense_layers", len(names))
    short = ShortConvolution(
        fields.count("hidden_size"), fields.count("conv_L_cache"), fields.flag("conv_bias", default=False)
    )
    heads = attention(fields, qk_norm=True)
    mlp = replace(dense(fields), intermediate_size=_rounded_width(fields))

    def layer(at: Fields, kind: tuple[str, bool]) -> Layer:
        part = biased_router(at) if kind[1] else mlp
        return Layer(short if kind[0] == "conv" else heads, part, _MIXER_NORMS)

    sparse = fields.has("num_experts")
    marked = [(name, sparse and index >= first) for index, name in enumerate(names)]
    return Decoder(stack(fields, marked, layer))


def _rounded_width(fields: Fields) -> int:
    """LFM2 keeps two thirds of the stated width, rounded up, unless it is told not to."""
    width = fields.optional_count("block_ff_dim") or fields.count("intermediate_size")
    if fields.has("num_experts") or not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    scaled = int(fields.real("block_ffn_dim_multiplier", 1.0) * (2 * width // 3))
    multiple = fields.optional_count("block_multiple_of") or 256
    return fields.whole("block_ff_dim", -(-scaled // multiple) * multiple, least=1)
