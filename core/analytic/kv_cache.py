"""The KV cache: what a token leaves behind so that later tokens need not recompute it.

Beside it stand the fixed state of layers that keep one instead (state spaces, linear attention), and the
keys of a sparse attention's indexer, which engines keep in a format of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.analytic.params import layer_kinds
from core.catalog.formats import number_format
from core.catalog.model import CompressedAttention, LatentAttention, Mixer, ModelSpec
from core.units import Number

#: Bytes of one key of a sparse attention's indexer beside its values: it is fp8 with one 32-bit scale.
#: https://github.com/deepseek-ai/DeepSeek-V3.2-Exp/blob/main/inference/model.py (Indexer), 2026-11-29
_INDEX_SCALE_BYTES = 4
#: A layout made for latents: fp8 with a scale for 128 values, and the rotary key in 16 bits.
_LATENT_FORMAT = "fp8_ds_mla"


def token_bytes(mixer: Mixer, kv: str) -> int:
    """Bytes that one token leaves in the cache of one layer.

    ``K * (D + Dv)`` elements for attention with KV heads (``Dv = D`` but in a few families), the latent
    and one rotary key for latent attention, nothing for layers that keep a state.

    >>> from core.catalog.model import Attention, LatentAttention
    >>> token_bytes(Attention(num_heads=32, num_kv_heads=8, head_dim=128), "bf16")
    4096
    >>> token_bytes(LatentAttention(128, 1536, 512, 128, 64, 128), "bf16")
    1152
    """
    form = number_format(kv, "kv")
    if kv == _LATENT_FORMAT and isinstance(mixer, LatentAttention):
        return int(
            form.vector_bytes(mixer.kv_rank) + number_format("bf16", "kv").vector_bytes(mixer.rope_dim)
        )
    return sum(int(vectors * form.vector_bytes(length)) for vectors, length in mixer.cache_vectors)


def bytes_per_token(model: ModelSpec, kv: str) -> int:
    """What one more token adds over all layers, at a context so short that no window binds.

    The sum of ``token_bytes`` over the layers: only KV heads are kept, and ``D`` is the stated head
    dimension, not hidden size / heads. Compressed entries of many tokens count as their share of a
    token. Ignored: the padding of the last page of a paged cache, and an indexer's keys
    (``index_bytes``).

    Raises:
        FormatError: the format is unknown, or not one for a cache.

    >>> from core.catalog.models import model
    >>> bytes_per_token(model("llama-3.1-8b"), "bf16")
    131072
    """
    number_format(kv, "kv")
    return sum(
        repeats * (token_bytes(mixer, kv) + int(_entries(mixer, 1.0) * token_bytes(mixer, kv)))
        for mixer, repeats in _mixers(model)
    )


def cache_bytes(model: ModelSpec, kv: str, batch: Number, context: Number) -> NDArray[np.float64]:
    """Bytes of the cache of ``batch`` sequences of ``context`` tokens each, windows respected.

    ``batch * sum over layers of min(context, window or chunk) * bytes of a token``, and for compressed
    attention one entry more for each whole block. Batch and context may be arrays that broadcast.
    Ignored: what an engine reserves beyond the tokens it holds.

    >>> from core.catalog.models import model
    >>> float(cache_bytes(model("llama-3.1-8b"), "bf16", batch=1, context=8192))
    1073741824.0
    """
    tokens = np.asarray(context, np.float64)
    total = np.zeros(np.shape(tokens))
    for mixer, layers in _mixers(model):
        kept = tokens if mixer.span is None else np.minimum(tokens, mixer.span)
        entries = np.floor(_entries(mixer, tokens))
        total = total + layers * token_bytes(mixer, kv) * (kept + entries)
    return np.asarray(np.asarray(batch, np.float64) * total)


def index_bytes(model: ModelSpec, batch: Number, context: Number) -> NDArray[np.float64]:
    """Bytes of the keys that the indexers of sparse attention keep: fp8 with a scale, whatever the cache's.

    ``batch * layers * context * (D_index + 4)``; one key a compressed block where there are blocks.

    >>> from core.catalog.models import model
    >>> float(index_bytes(model("llama-3.1-8b"), 1, 8192))
    0.0
    """
    tokens = np.asarray(context, np.float64)
    total = np.zeros(np.shape(tokens))
    for mixer, layers in _mixers(model):
        if isinstance(mixer, LatentAttention | CompressedAttention) and mixer.indexer:
            keys = tokens if isinstance(mixer, LatentAttention) else np.floor(_entries(mixer, tokens))
            total = total + layers * (mixer.indexer.head_dim + _INDEX_SCALE_BYTES) * keys
    return np.asarray(np.asarray(batch, np.float64) * total)


def state_bytes(model: ModelSpec, convolution: str = "bf16", recurrent: str = "fp32") -> int:
    """Bytes of the state that one sequence keeps in layers without a cache, whatever its length.

    The last inputs of short convolutions at 16 bit, and the running sums of state spaces and linear
    attention at 32 bit, as most engines have it; both can be chosen.

    >>> from core.catalog.models import model
    >>> state_bytes(model("llama-3.1-8b"))
    0
    """
    conv, sums = number_format(convolution, "kv"), number_format(recurrent, "kv")
    return sum(
        layers * int(conv.vector_bytes(mixer.state.convolution) + sums.vector_bytes(mixer.state.recurrent))
        for mixer, layers in _mixers(model)
    )


def _entries(mixer: Mixer, tokens: Number) -> Number:
    """Compressed entries for so many tokens, the last one perhaps not whole."""
    if isinstance(mixer, CompressedAttention) and mixer.ratio:
        return tokens / mixer.ratio
    return 0.0 * tokens


def _mixers(model: ModelSpec) -> list[tuple[Mixer, int]]:
    """Each kind of layer's mixer and how many layers have it."""
    return [(layer.mixer, repeats) for layer, repeats in layer_kinds(model) if layer.mixer is not None]
