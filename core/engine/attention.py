"""Attention over the cache: the second seam.

Query heads that share a key head (GQA) are folded into the query length, so that every key is read
once for its whole group. That is exact for a decode step, where no query has to be kept from a later
key, and for a prefill the group rides along as a head whose keys have stride zero.
"""

from __future__ import annotations

import importlib.util
import math
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from core.catalog.model import Attention
from core.engine.batch import Batch, Span
from core.engine.kv_cache import KVLayer
from core.engine.native import attention as native_attention
from core.errors import RequestError

AttentionWay = Literal["auto", "triton", "flex", "gather"]


class AttentionBackend(Protocol):
    """Reads the cache for every row of a batch."""

    def __call__(self, queries: Tensor, pool: KVLayer, shape: Attention, batch: Batch) -> Tensor:
        """Attend.

        Args:
            queries: [T, H * D], rotated.
            pool: one layer's slots.
            shape: heads and window.
            batch: who may look where.

        Returns:
            [T, H * D] in the format of the queries.
        """

    @property
    def num_bytes(self) -> int:
        """Memory that it keeps for itself."""


class ViewedAttention:
    """A view of the pool is enough where the slots of a sequence follow one another (CUDA)."""

    def __call__(self, queries: Tensor, pool: KVLayer, shape: Attention, batch: Batch) -> Tensor:
        """See ``AttentionBackend``."""
        return _by_sequence(self, queries, pool, shape, batch)

    @property
    def num_bytes(self) -> int:
        """See ``AttentionBackend``."""
        return 0

    def heads(self, cached: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Keys and values out of ``cached`` [2, K, S, D], each [1, K, S, D]."""
        keys, values = cached.to(dtype).unsqueeze(1).unbind()
        return keys, values


class GatheredAttention:
    """The cached slots are first copied so that each head's tokens lie together (CPU).

    A slot holds all heads side by side, and a product that walks along one head steps over the others at
    every token, which a processor's prefetching does not follow; one pass of copying costs less. A
    paged cache gathers its pages in the same place. The copy also converts: attention runs in the
    format of the activations, whatever the cache is kept in.
    """

    def __init__(self) -> None:
        self._room = torch.empty(0)
        self._shape = torch.Size()
        self._both = self._keys = self._values = self._room

    def __call__(self, queries: Tensor, pool: KVLayer, shape: Attention, batch: Batch) -> Tensor:
        """See ``AttentionBackend``."""
        return _by_sequence(self, queries, pool, shape, batch)

    def heads(self, cached: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Keys and values out of ``cached`` [2, K, S, D], each [1, K, S, D]."""
        if cached.shape != self._shape or self._both.dtype != dtype:
            self._make_room(cached.shape, dtype, cached.device)
        self._both.copy_(cached)
        return self._keys, self._values

    def _make_room(self, wanted: torch.Size, dtype: torch.dtype, device: torch.device) -> None:
        """The same memory serves every layer and every step, until it is too small."""
        count = math.prod(wanted)
        if self._room.numel() < count or self._room.dtype != dtype:
            self._room = torch.empty(2 * count, dtype=dtype, device=device)
        self._both = self._room[:count].view(wanted)
        self._keys, self._values = self._both.unsqueeze(1).unbind()
        self._shape = wanted

    @property
    def num_bytes(self) -> int:
        """See ``AttentionBackend``."""
        return self._room.nbytes


def make_attention(device: torch.device, kv: str, way: AttentionWay = "auto") -> AttentionBackend:
    """Choose how attention reads the cache on this device.

    Args:
        device: where it runs.
        kv: id of the cache's format.
        way: on a GPU, "triton" is our kernel, "flex" torch's flex_attention and "gather" plain torch after a
            copy; "auto" takes ours where Triton is installed and it knows the format.

    Raises:
        RequestError: the device or the cache's format does not have this way.
    """
    from core.engine.gpu.row_attention import BatchedAttention, FlexRows, gathered_rows  # noqa: PLC0415 - a circle

    if device.type != "cuda":
        if way != "auto":
            raise RequestError(f"On a CPU attention has one way, auto; got {way!r}. Choose auto or a GPU.")
        return GatheredAttention()
    known = kv != "int4" and importlib.util.find_spec("triton") is not None
    if way == "triton" and not known:
        raise RequestError(
            "The attention triton needs Triton and a cache in fp32, bf16, fp16 or int8; the cache is "
            f"{kv}. Choose another cache, or auto."
        )
    if way == "flex":
        return BatchedAttention(FlexRows(), ViewedAttention())
    if way == "gather" or not known:
        return BatchedAttention(gathered_rows, ViewedAttention())
    from core.engine.gpu.triton_attention import triton_rows  # noqa: PLC0415 - Triton is not everywhere

    return BatchedAttention(triton_rows, ViewedAttention())


class _Heads(Protocol):
    def heads(self, cached: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]: ...


def _by_sequence(backend: _Heads, queries: Tensor, pool: KVLayer, shape: Attention, batch: Batch) -> Tensor:
    if len(batch.spans) == 1:
        return _attend(backend, queries, pool, shape, batch.spans[0])
    rows = [
        _attend(backend, queries[span.query_start : span.query_start + span.new_tokens], pool, shape, span)
        for span in batch.spans
    ]
    return torch.cat(rows)


def _attend(backend: _Heads, queries: Tensor, pool: KVLayer, shape: Attention, span: Span) -> Tensor:
    # A lone new token needs no mask: its window is a shorter view.
    first = max(0, span.context - shape.window) if shape.window and span.new_tokens == 1 else 0
    where = span.where(first)
    if (
        span.new_tokens == 1
        and (attended := native_attention.attend(queries, pool, shape, where)) is not None
    ):
        return attended
    keys, values = backend.heads(pool.read(where, queries.dtype), queries.dtype)
    if span.new_tokens == 1:
        return _attend_one(queries, keys, values, shape)
    return _attend_many(queries, keys, values, shape, span)


def _attend_one(query: Tensor, keys: Tensor, values: Tensor, shape: Attention) -> Tensor:
    """One new token: its H heads are H / K queries for each of K keys."""
    folded = query.view(1, shape.num_kv_heads, -1, shape.head_dim)  # [1, K, H / K, D]
    attended = functional.scaled_dot_product_attention(folded, keys, values)
    return attended.reshape(1, -1)


def _attend_many(queries: Tensor, keys: Tensor, values: Tensor, shape: Attention, span: Span) -> Tensor:
    """Many new tokens: K is the batch, the group shares its keys by a stride of zero."""
    groups = shape.num_heads // shape.num_kv_heads
    split = queries.view(-1, shape.num_kv_heads, groups, shape.head_dim).permute(1, 2, 0, 3)  # [K, G, T, D]
    keys, values = (kept.transpose(0, 1).expand(-1, groups, -1, -1) for kept in (keys, values))
    whole = span.context == span.new_tokens and (shape.window is None or span.context <= shape.window)
    mask = None if whole else _mask(span, shape.window, queries.device)
    attended = functional.scaled_dot_product_attention(split, keys, values, mask, is_causal=whole)
    return attended.permute(2, 0, 1, 3).reshape(queries.shape)


def _mask(span: Span, window: int | None, device: torch.device) -> Tensor:
    """True where a new token may look: up to itself, and back to the edge of its window. [T, S]."""
    seen = torch.arange(span.context, device=device)
    own = seen[span.context - span.new_tokens :].unsqueeze(1)
    allowed = seen <= own
    return allowed if window is None else allowed & (seen > own - window)
