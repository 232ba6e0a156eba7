"""The rows of mixers that keep a cache: attention with KV heads, latent attention, compressed attention.

Attention is fused, so no S x S matrix exists: it reads queries and cache and writes one vector a
head. Its FLOPs are those of the pairs that a causal mask lets through.
"""

from __future__ import annotations

import numpy as np

from core.analytic.forward_pass import ForwardPass, LayerRows
from core.analytic.kv_cache import token_bytes
from core.analytic.pairs import causal_pairs, visible_tokens
from core.analytic.state_rows import mamba2_rows
from core.analytic.table import Row
from core.catalog.formats import number_format
from core.catalog.mixers import Attention, CompressedAttention, Indexer, LatentAttention
from core.units import FLOPS_PER_MAC, Number

#: A key of a sparse attention's indexer is fp8 with one fp32 scale.
_INDEX_SCALE_BYTES = 4


# --- Attention with query and KV heads ------------------------------------------------------------


def attention_rows(mixer: Attention, make: LayerRows) -> list[Row]:
    """Projections, positions, keys and values into the cache, attention, and the output projection.

    A state space beside it follows: both read the same input, and their outputs are added.
    """
    heads = mixer.query_features + (mixer.kv_features if mixer.kv_projection != "none" else 0)
    rotated = 1.0 if mixer.rotary_dim is None else mixer.rotary_dim / mixer.head_dim
    return [
        *make.linear("qkv"),
        *(make.norm("qk_norm", heads) if mixer.qk_norm else []),
        *([make.simple("rope", "rope", 2 * heads * rotated)] if rotated else []),
        *(_write(mixer.kv_features + mixer.value_features, token_bytes(mixer, make.forward.kv), make)),
        *_gathered_queries(mixer.query_features, make),
        _attend(mixer, make),
        *_scattered_outputs(mixer.output_features, make),
        *make.linear("attention_gate"),
        *make.linear("output"),
        *([] if mixer.beside is None else mamba2_rows(mixer.beside, make)),
    ]


def _attend(mixer: Attention, make: LayerRows) -> Row:
    forward = make.forward
    form = number_format(forward.kv, "kv")
    entry = mixer.num_kv_heads * (form.vector_bytes(mixer.head_dim) + form.vector_bytes(mixer.value_head_dim))
    bounds = {"window": mixer.window, "chunk": mixer.chunk}
    return _attention_row(
        make,
        pairs=causal_pairs(forward.new_tokens, forward.context, **bounds),
        pair_features=mixer.query_features + mixer.output_features,
        read=visible_tokens(forward.new_tokens, forward.context, **bounds) * entry,
        moved=mixer.query_features + mixer.output_features,
    )


def _write(features: float, new_bytes: float, make: LayerRows) -> list[Row]:
    """New entries into the cache; none where the layer reads an earlier one's."""
    if not new_bytes:
        return []
    forward = make.forward
    return [
        Row(
            "kv_write",
            "kv_write",
            forward.kv,
            make.repeats,
            forward.tokens,
            activation_bytes=forward.moved(features),
            kv_write_bytes=forward.tokens * new_bytes / forward.split.context,
        )
    ]


def _attention_row(
    make: LayerRows,
    *,
    pairs: Number,
    pair_features: float,
    read: Number,
    moved: float,
    name: str = "attention",
) -> Row:
    """Scores and weighted sums over ``pairs`` of a query and an entry, per sequence."""
    forward = make.forward
    return Row(
        name,
        "attention",
        forward.kv,
        make.repeats,
        forward.new_tokens,  # each sequence is a product of its own
        flops=forward.batch * pairs * (FLOPS_PER_MAC * pair_features),
        activation_bytes=forward.moved(moved),
        kv_read_bytes=forward.batch * read / forward.split.context,
    )


# --- A sequence's cache spread over chips ---------------------------------------------------------


def _gathered_queries(features: float, make: LayerRows) -> list[Row]:
    """Each chip of a context group needs the queries of all of its heads."""
    ranks = make.forward.split.context
    message = make.forward.moved(features * ranks)
    return make.exchange("query_gather", "all_gather", ranks, message)


def _scattered_outputs(features: float, make: LayerRows) -> list[Row]:
    """Partial sums over the chips' tokens are added, and each chip keeps its own heads."""
    ranks = make.forward.split.context
    message = make.forward.moved(features * ranks)
    return make.exchange("context_reduce", "reduce_scatter", ranks, message)


# --- Latent attention -----------------------------------------------------------------------------


def latent_rows(mixer: LatentAttention, make: LayerRows) -> list[Row]:
    """MLA: the cache holds one latent and one rotary key a token, whatever the number of heads.

    Absorbed, the up-projection works on the new tokens' queries and outputs, and attention runs in the
    latent's width. Expanded, it makes keys and values of every token in the context, which attention
    then reads at the width of a head. Absorbed is cheaper for few new tokens, expanded for many.
    """
    forward = make.forward
    absorbed = forward.latent == "absorbed"
    width = _latent_width(mixer) if absorbed else mixer.head_dim + mixer.value_dim
    bound = mixer.window if mixer.indexer is None else _least(mixer.window, mixer.indexer.top_k)
    expanded = forward.batch * forward.context
    return [
        *make.linear("query", "query_down"),
        *(make.norm("query_norm", mixer.query_rank) if mixer.query_rank else []),
        *make.linear("query_up"),
        *make.linear("latent"),
        *make.norm("latent_norm", mixer.kv_rank),
        make.simple("rope", "rope", 2 * (mixer.num_heads + 1) * mixer.rope_dim),
        *_write(mixer.latent_features, token_bytes(mixer, forward.kv), make),
        *_index(mixer.indexer, make, ratio=1),
        *make.linear("latent_up", rows=None if absorbed else expanded),
        *_gathered_queries(mixer.num_heads * mixer.latent_features, make),
        _attend_latents(mixer, make, width, bound),
        *_scattered_outputs(mixer.num_heads * mixer.kv_rank, make),
        *make.linear("attention_gate"),
        *make.linear("output"),
    ]


def _latent_width(mixer: LatentAttention) -> int:
    """Multiply-accumulates of one head and pair in latent space: a score, and a sum over the latent."""
    return mixer.latent_features + mixer.kv_rank


def _least(first: int | None, second: int) -> int:
    return second if first is None else min(first, second)


def _attend_latents(mixer: LatentAttention, make: LayerRows, width: int, bound: int | None) -> Row:
    forward = make.forward
    visible = visible_tokens(forward.new_tokens, forward.context, mixer.window)
    if mixer.indexer:
        visible = np.minimum(visible, forward.new_tokens * mixer.indexer.top_k)
    row = _attention_row(
        make,
        pairs=causal_pairs(forward.new_tokens, forward.context, bound),
        pair_features=mixer.num_heads * width,
        read=visible * token_bytes(mixer, forward.kv),
        moved=mixer.num_heads * width,
    )
    if forward.latent == "absorbed":
        return row
    # Keys and values of all heads are read as activations: they were just made from the latents.
    heads = mixer.num_heads * (mixer.head_dim + mixer.value_dim)
    read = forward.batch * visible * (heads * forward.element)
    return row._replace(format=forward.activation, activation_bytes=row.activation_bytes + read)


def _index(indexer: Indexer | None, make: LayerRows, ratio: int) -> list[Row]:
    """The scorer of sparse attention: projections, and a score for each entry of ``ratio`` tokens."""
    if indexer is None:
        return []
    forward = make.forward
    key_bytes = indexer.head_dim + _INDEX_SCALE_BYTES
    score = _attention_row(
        make,
        pairs=_blocks_seen(forward.context, ratio, None)
        - _blocks_seen(forward.context - forward.new_tokens, ratio, None),
        pair_features=indexer.num_heads * indexer.head_dim,
        read=np.floor(forward.context / ratio) * key_bytes,
        moved=indexer.num_heads * indexer.head_dim,
        name="index_attention",
    )
    written = forward.tokens * (key_bytes / ratio) / forward.split.context
    projections = make.linear("index_query", "index_key", "index_score")
    return [*projections, score._replace(kv_write_bytes=written)]


# --- Compressed attention -------------------------------------------------------------------------


def compressed_rows(mixer: CompressedAttention, make: LayerRows) -> list[Row]:
    """DeepSeek-V4: the last ``window`` tokens one by one, older ones through an entry for each block."""
    forward = make.forward
    share = 1 / mixer.ratio if mixer.ratio else 0.0
    entry = token_bytes(mixer, forward.kv)
    pairs, visible = _compressed_pairs(mixer, forward)
    return [
        *make.linear("query_down"),
        *make.norm("query_norm", mixer.query_rank),
        *make.linear("query_up", "latent"),
        *make.norm("latent_norm", mixer.head_dim),
        make.simple("rope", "rope", 2 * (mixer.num_heads + 1) * mixer.rope_dim),
        *make.linear("compress"),
        *_write(mixer.head_dim * (1 + share), entry * (1 + share), make),
        *_index(mixer.indexer, make, mixer.ratio),
        *_gathered_queries(mixer.query_features, make),
        _attention_row(
            make,
            pairs=pairs,
            pair_features=2 * mixer.query_features,
            read=visible * entry,
            moved=mixer.query_features + mixer.output_features,
        ),
        *_scattered_outputs(mixer.output_features, make),
        *make.linear("output_down", "output"),
    ]


def _compressed_pairs(mixer: CompressedAttention, forward: ForwardPass) -> tuple[Number, Number]:
    """Pairs, and entries read: the window, and the blocks that the indexer lets through."""
    new, context = forward.new_tokens, forward.context
    pairs, visible = causal_pairs(new, context, mixer.window), visible_tokens(new, context, mixer.window)
    if not mixer.ratio:
        return pairs, visible
    most = None if mixer.indexer is None else mixer.indexer.top_k
    blocks = _blocks_seen(context, mixer.ratio, most) - _blocks_seen(context - new, mixer.ratio, most)
    entries = np.floor(context / mixer.ratio)
    return pairs + blocks, visible + (entries if most is None else np.minimum(entries, new * most))


def _blocks_seen(length: Number, ratio: int, most: int | None) -> Number:
    """Whole blocks that the first ``length`` tokens see, added up: each ``floor(position / ratio)``.

    Of these at most ``most`` a token.
    """
    if most is None:
        whole = np.floor(length / ratio)
        return np.asarray(ratio * whole * (whole - 1) / 2 + whole * (length - ratio * whole + 1))
    full = ratio * (most + 1) - 1  # the last position that sees no more than the most
    return _blocks_seen(np.minimum(length, full), ratio, None) + most * np.maximum(length - full, 0)
