"""Latent attention: DeepSeek, Kimi K2, GLM-5, MiniCPM3; and DeepSeek-V4's compressed attention."""

from __future__ import annotations

from core.catalog.families.expert_parts import experts, moe_layers, shared_experts
from core.catalog.families.family import Decoder
from core.catalog.families.mixtures import biased_router
from core.catalog.families.parts import dense, num_layers, stack
from core.catalog.fields import Fields
from core.catalog.model import (
    CompressedAttention,
    FeedForward,
    Indexer,
    LatentAttention,
    Layer,
    Part,
)
from core.errors import ConfigError


def latent_attention(fields: Fields) -> LatentAttention:
    """The ranks and dimensions of latent attention; a q_lora_rank of null projects queries at once.

    Raises:
        ConfigError: the rotary part is odd.
    """
    rope = fields.count("qk_rope_head_dim")
    if rope % 2:
        raise ConfigError(
            f"qk_rope_head_dim must be even, since rotary positions pair its halves; got {rope:,}. "
            "Correct the config."
        )
    return LatentAttention(
        num_heads=fields.count("num_attention_heads"),
        query_rank=_query_rank(fields),
        kv_rank=fields.count("kv_lora_rank"),
        nope_dim=fields.count("qk_nope_head_dim"),
        rope_dim=rope,
        value_dim=fields.count("v_head_dim"),
        bias=fields.flag("attention_bias", default=False),
        indexer=_indexer(fields),
    )


def _query_rank(fields: Fields) -> int | None:
    """A null or a zero is a statement here: no rank. Silence is the model type's default."""
    if "q_lora_rank" in fields.values and not fields.value("q_lora_rank"):
        return None
    if fields.has("q_lora_rank") or "q_lora_rank" in fields.defaults:
        return fields.count("q_lora_rank")
    return None


def _indexer(fields: Fields) -> Indexer | None:
    if not (fields.has("index_n_heads") or "index_n_heads" in fields.defaults):
        return None
    return Indexer(fields.count("index_n_heads"), fields.count("index_head_dim"), fields.count("index_topk"))


def _mixture(fields: Fields, routed: FeedForward | None) -> Decoder:
    mixer = latent_attention(fields)

    def layer(at: Fields, sparse: bool) -> Layer:
        return Layer(mixer, routed if sparse and routed else dense(at))

    return Decoder(stack(fields, moe_layers(fields), layer))


def deepseek_v2(fields: Fields) -> Decoder:
    """DeepSeek-V2: latent attention; the first layers dense; shared experts; a router without a bias."""
    routed = experts(fields)
    shared = shared_experts(fields, routed.expert.intermediate_size)
    if fields.text("topk_method") == "noaux_tc":
        return deepseek_v3(fields)
    part = experts(fields, shared=shared)
    return _mixture(fields, part)


def deepseek_v3(fields: Fields) -> Decoder:
    """DeepSeek-V3 and R1, Kimi K2: the same, with a bias in the router; V3.2 and GLM-5 add an indexer."""
    return _mixture(fields, biased_router(fields))


def minicpm3(fields: Fields) -> Decoder:
    """MiniCPM3: latent attention with dense layers."""
    layer = Layer(latent_attention(fields), dense(fields))
    return Decoder((layer,) * num_layers(fields))


def deepseek_v4(fields: Fields) -> Decoder:
    """DeepSeek-V4: windowed attention with compressed entries, hyper-connections, experts everywhere.

    ``compress_ratios`` has one ratio a layer (0: the window alone; the layers of a draft module follow
    them in some files). The layers with the smaller ratio have an indexer, and entries that overlap.
    """
    ratios = _ratios(fields)
    sparse = min((ratio for ratio in ratios if ratio), default=0)
    routed = biased_router(fields)
    plain = experts(fields, shared=routed.shared)
    hashed = _num_hashed(fields)
    streams = fields.optional_count("hc_mult") or 1

    def layer(at: Fields, kind: tuple[int, bool]) -> Layer:
        ratio, by_hash = kind
        mixer = _compressed(at, ratio, overlapping=ratio == sparse)
        return Layer(mixer, plain if by_hash else routed, streams=streams)

    layers = stack(fields, [(ratio, index < hashed) for index, ratio in enumerate(ratios)], layer)
    fields.notes.append(
        "Old tokens are kept as one entry for several tokens; the last tokens, not yet whole blocks, "
        "take a little more than is counted."
    )
    tables_of_words = _engram(fields)
    width = streams * fields.count("hidden_size")
    head = (Part("the head's weights of the residual streams", streams * width + streams + 1),)
    tables = hashed * fields.count("vocab_size") * fields.count("num_experts_per_tok")
    extras = (Part("tables that send tokens to experts by their number", tables),) if tables else ()
    others = head if streams > 1 else ()
    return Decoder(layers, others=others, extras=extras + tables_of_words)


def _engram(fields: Fields) -> tuple[Part, ...]:
    """DeepSeek-V4.1's tables of word groups: the config does not tell their whole layout."""
    if not fields.has("engram_layer_ids"):
        return ()
    fields.notes.append(
        "This model also looks groups of tokens up in large tables (engram), shares caches between "
        "layers and picks candidate blocks; none of it is counted."
    )
    return (Part("tables of token groups (engram)", None),)


def _ratios(fields: Fields) -> list[int]:
    """Tokens an entry in each layer: a list, or names of kinds with a rate each (newer files)."""
    layers = num_layers(fields)
    ratios = fields.counts("compress_ratios")
    rates, names = fields.table("compress_rates"), fields.texts("layer_types")
    if ratios is None and rates is not None and names is not None:
        ratios = [0 if name == "sliding_attention" else rates.count(name) for name in names]
    if ratios is None:
        raise ConfigError(
            "The config must state compress_ratios; it is missing or null. Paste the whole file."
        )
    if len(ratios) < layers:
        raise ConfigError(
            f"compress_ratios must have one entry a layer; got {len(ratios):,} for {layers:,} layers. "
            "Correct the config."
        )
    return ratios[:layers]


def _num_hashed(fields: Fields) -> int:
    """How many of the first layers choose experts by the token's number."""
    named = fields.texts("mlp_layer_types") or []
    return fields.number_or("num_hash_layers", named.count("hash_moe"))


def _compressed(fields: Fields, ratio: int, *, overlapping: bool) -> CompressedAttention:
    heads, dim = fields.count("num_attention_heads"), fields.count("head_dim")
    groups = fields.count("o_groups")
    if heads * dim % groups:
        raise ConfigError(
            f"o_groups must divide num_attention_heads * head_dim; got {groups:,} and {heads * dim:,}. "
            "Correct the config."
        )
    return CompressedAttention(
        num_heads=heads,
        head_dim=dim,
        query_rank=fields.count("q_lora_rank"),
        rope_dim=fields.count("qk_rope_head_dim"),
        output_groups=groups,
        output_rank=fields.count("o_lora_rank"),
        window=fields.count("sliding_window"),
        ratio=ratio,
        series=2 if overlapping else 1,
        indexer=_indexer(fields) if ratio and overlapping else None,
    )
