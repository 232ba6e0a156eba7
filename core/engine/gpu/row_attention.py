"""Attention of few new tokens of every sequence at once, by a block table: the path of a GPU.

``gathered_rows`` is the plain way, which copies what is seen; every other one is held against it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from core.catalog.model import Attention
from core.engine.attention import AttentionBackend
from core.engine.batch import Batch
from core.engine.gpu.block_table import FEW_ROWS, BlockTable
from core.engine.kv_cache import KVLayer


class RowAttention(Protocol):
    """Attends for R queries in one call."""

    def __call__(self, queries: Tensor, layer: KVLayer, shape: Attention, blocks: BlockTable) -> Tensor:
        """Attend.

        Args:
            queries: [R, H * D], rotated.
            layer: one layer's slots.
            shape: heads and window.
            blocks: where each query looks.

        Returns:
            [R, H * D] in the format of the queries.
        """


class BatchedAttention:
    """Few new tokens of all sequences in one launch; long pieces of prompts one after the other.

    Args:
        rows: attends for the few. long: attends for a long piece, from its span.
    """

    def __init__(self, rows: RowAttention, long: AttentionBackend) -> None:
        self._rows, self._long = rows, long

    def __call__(self, queries: Tensor, pool: KVLayer, shape: Attention, batch: Batch) -> Tensor:
        """See ``AttentionBackend``."""
        long = [span for span in batch.spans if span.new_tokens > FEW_ROWS]
        if not long:
            return self._rows(queries, pool, shape, batch.blocks())
        attended = queries.new_empty(queries.shape)
        for span in long:
            piece = slice(span.query_start, span.query_start + span.new_tokens)
            alone = replace(batch, spans=(replace(span, query_start=0),))
            attended[piece] = self._long(queries[piece], pool, shape, alone)
        few = [span.query_start + row for span in batch.short_spans for row in range(span.new_tokens)]
        if few:
            where = torch.tensor(few).to(queries.device)
            attended[where] = self._rows(queries[where], pool, shape, batch.blocks())
        return attended

    @property
    def num_bytes(self) -> int:
        """See ``AttentionBackend``."""
        return self._long.num_bytes


def gathered(
    queries: Tensor, layer: KVLayer, shape: Attention, blocks: BlockTable
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries [R, K, H / K, D], copies of keys and values [R, K, S, D], and who sees what, [R, S]."""
    slots, seen = blocks.slots(shape.window)
    both = layer.read(slots.flatten(), queries.dtype).to(queries.dtype)
    keys, values = both.view(2, -1, *seen.shape, shape.head_dim).transpose(1, 2).unbind()
    return queries.reshape(len(queries), shape.num_kv_heads, -1, shape.head_dim), keys, values, seen


def gathered_rows(queries: Tensor, layer: KVLayer, shape: Attention, blocks: BlockTable) -> Tensor:
    """See ``RowAttention``; any format of the cache, by torch's own attention."""
    folded, keys, values, seen = gathered(queries, layer, shape, blocks)
    attended = functional.scaled_dot_product_attention(folded, keys, values, seen[:, None, None, :])
    return attended.reshape(queries.shape)


class FlexRows:
    """flex_attention, torch's compiler for attention: the library's way, to compare ours with.

    Its own paged form wants pages of 128 tokens, so what is seen is gathered first.
    """

    def __init__(self) -> None:
        from torch.nn.attention.flex_attention import flex_attention  # noqa: PLC0415 - seconds to load

        self._attend = torch.compile(flex_attention, dynamic=False)

    def __call__(self, queries: Tensor, layer: KVLayer, shape: Attention, blocks: BlockTable) -> Tensor:
        """See ``RowAttention``."""
        folded, keys, values, seen = gathered(queries, layer, shape, blocks)

        def masked(score: Tensor, row: Tensor, head: Tensor, query: Tensor, token: Tensor) -> Tensor:
            del head, query
            return torch.where(seen[row, token], score, -torch.inf)

        attended: Tensor = self._attend(folded, keys, values, score_mod=masked)
        return attended.reshape(queries.shape)
