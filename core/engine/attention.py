"""Attention over the cache: the second seam.

Query heads that share a key head (GQA) are folded into the query length, so that every key is read
once for its whole group. That is exact for a decode step, where no query has to be kept from a later
key, and for a prefill the group rides along as a head whose keys have stride zero.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from core.catalog.model import Attention
from core.engine.batch import Batch, Span


class AttentionBackend(Protocol):
    """Reads the cache for every row of a batch."""

    def __call__(self, queries: Tensor, pool: Tensor, shape: Attention, batch: Batch) -> Tensor:
        """Attend.

        Args:
            queries: [T, H * D], rotated.
            pool: one layer's slots, [slots, 2 * K * D].
            shape: heads and window.
            batch: who may look where.

        Returns:
            [T, H * D] in the format of the queries.
        """


class ContiguousAttention:
    """Each sequence's keys and values lie in one region, so a view of the pool is enough."""

    def __call__(self, queries: Tensor, pool: Tensor, shape: Attention, batch: Batch) -> Tensor:
        """See ``AttentionBackend``."""
        if len(batch.spans) == 1:
            return _attend(queries, pool, shape, batch.spans[0])
        rows = [
            _attend(queries[span.query_start : span.query_start + span.new_tokens], pool, shape, span)
            for span in batch.spans
        ]
        return torch.cat(rows)


def make_attention(device: torch.device) -> AttentionBackend:
    """Choose how attention reads the cache on this device; one way serves both so far."""
    del device
    return ContiguousAttention()


def _attend(queries: Tensor, pool: Tensor, shape: Attention, span: Span) -> Tensor:
    end = span.first_slot + span.context
    # A lone new token needs no mask: its window is a shorter view.
    first = max(0, span.context - shape.window) if shape.window and span.new_tokens == 1 else 0
    cached = pool[span.first_slot + first : end].view(-1, 2, shape.num_kv_heads, shape.head_dim)
    keys, values = cached.permute(1, 2, 0, 3).unbind()  # [K, S, D] each
    asked = queries if queries.dtype == pool.dtype else queries.to(pool.dtype)
    if span.new_tokens == 1:
        attended = _attend_one(asked, keys, values, shape)
    else:
        attended = _attend_many(asked, keys, values, shape, span)
    return attended if attended.dtype == queries.dtype else attended.to(queries.dtype)


def _attend_one(query: Tensor, keys: Tensor, values: Tensor, shape: Attention) -> Tensor:
    """One new token: its H heads are H / K queries for each of K keys."""
    folded = query.view(1, shape.num_kv_heads, -1, shape.head_dim)  # [1, K, H / K, D]
    attended = functional.scaled_dot_product_attention(folded, keys.unsqueeze(0), values.unsqueeze(0))
    return attended.reshape(1, -1)


def _attend_many(queries: Tensor, keys: Tensor, values: Tensor, shape: Attention, span: Span) -> Tensor:
    """Many new tokens: K is the batch, the group shares its keys by a stride of zero."""
    groups = shape.num_heads // shape.num_kv_heads
    split = queries.view(-1, shape.num_kv_heads, groups, shape.head_dim).permute(1, 2, 0, 3)  # [K, G, T, D]
    keys, values = (kept.unsqueeze(1).expand(-1, groups, -1, -1) for kept in (keys, values))
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
