"""The KV cache: what a token leaves behind so that later tokens need not recompute it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.catalog.formats import number_format
from core.catalog.model import Attention, ModelSpec
from core.units import Number


def token_bytes(attention: Attention, kv: str) -> int:
    """Bytes of one token's keys and values in one layer: ``2 * K`` vectors of ``D`` elements.

    >>> from core.catalog.model import Attention
    >>> token_bytes(Attention(num_heads=32, num_kv_heads=8, head_dim=128), "bf16")
    4096
    """
    vector = number_format(kv, "kv").vector_bytes(attention.head_dim)
    return int(2 * attention.num_kv_heads * vector)


def bytes_per_token(model: ModelSpec, kv: str) -> int:
    """What one more token adds over all layers, at a context so short that no window binds.

    ``2 * L * K * D * bytes``: only the KV heads are kept, and ``D`` is the stated head dimension, not
    hidden size / heads. Ignored: the padding of the last page of a paged cache.

    Raises:
        FormatError: the format is unknown, or not one for a cache.

    >>> from core.catalog.models import model
    >>> bytes_per_token(model("llama-3.1-8b"), "bf16")
    131072
    """
    return sum(token_bytes(layer.attention, kv) for layer in model.layers)


def cache_bytes(model: ModelSpec, kv: str, batch: Number, context: Number) -> NDArray[np.float64]:
    """Bytes of the cache of ``batch`` sequences of ``context`` tokens each, windows respected.

    ``batch * sum over layers of min(context, window) * bytes of a token``. Batch and context may be
    arrays that broadcast. Ignored: what an engine reserves beyond the tokens it holds.

    >>> from core.catalog.models import model
    >>> float(cache_bytes(model("llama-3.1-8b"), "bf16", batch=1, context=8192))
    1073741824.0
    """
    tokens = np.asarray(context, np.float64)
    total = np.zeros(np.shape(tokens))
    for attention, layers in _kinds(model).items():
        kept = tokens if attention.window is None else np.minimum(tokens, attention.window)
        total = total + layers * token_bytes(attention, kv) * kept
    return np.asarray(np.asarray(batch, np.float64) * total)


def _kinds(model: ModelSpec) -> dict[Attention, int]:
    kinds: dict[Attention, int] = {}
    for layer in model.layers:
        kinds[layer.attention] = kinds.get(layer.attention, 0) + 1
    return kinds
