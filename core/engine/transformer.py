"""One forward pass as a list of operators, under the names of ``core.analytic.operators``.

Every operator is a small method that reads and writes fields of ``Pass``. The list is the model: the
normal path runs it from top to bottom, and a profile runs the same list with a clock between its
entries, so that what is measured and what is predicted meet name by name.

Shapes: T new tokens over all sequences, E hidden, H query heads, K key heads, D head dimension,
F intermediate, V vocabulary, B sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from core.catalog.model import Layer
from core.engine.attention import AttentionBackend
from core.engine.batch import Batch
from core.engine.feed_forward import FeedForward, Routing
from core.engine.kernels import LinearKernel
from core.engine.kv_cache import KVPool
from core.engine.native import binding as native
from core.engine.rope import RopeTable, turn
from core.engine.table import EmbeddingTable


class Pass:
    """The values that flow through one forward pass; each operator replaces some of them."""

    __slots__ = (
        *("batch", "cosine", "hidden", "logits", "normed", "pool", "qkv", "sine", "wide"),
        *("expert_bytes", "experts_read", "routing"),
    )

    batch: Batch
    pool: KVPool
    hidden: Tensor  # [T, E] the residual stream
    normed: Tensor  # [T, E], or what the last operator handed to the next
    qkv: Tensor  # [T, (H + 2K) * D]
    wide: Tensor  # [T, 2F], then [T, F]
    cosine: Tensor  # [T, 1, D]
    sine: Tensor
    logits: Tensor  # [B, V]
    routing: Routing  # of the last layer with experts

    def __init__(self, batch: Batch, pool: KVPool) -> None:
        self.batch = batch
        self.pool = pool
        #: Different experts that were read, summed over the layers, and the bytes of their matrices.
        self.experts_read = self.expert_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of the values at the end of a pass."""
        values = (self.hidden, self.normed, self.qkv, self.wide, self.logits)
        return sum(value.nbytes for value in values)


#: A named step of the pass.
Operator = tuple[str, Callable[[Pass], None]]


@dataclass(slots=True)
class Block:
    """One decoder layer: its weights and its operators."""

    index: int
    layer: Layer
    eps: float
    attend: AttentionBackend
    attention_norm_weight: Tensor
    mlp_norm_weight: Tensor
    qkv_linear: LinearKernel
    output_linear: LinearKernel
    feed_forward: FeedForward
    query_norm_weight: Tensor | None = None
    key_norm_weight: Tensor | None = None

    def operators(self) -> list[Operator]:
        """The layer's operators in the order in which they run."""
        norm = [] if self.query_norm_weight is None else [self.qk_norm]
        first = [
            self.attention_norm,
            self.qkv,
            *norm,
            self.rope,
            self.kv_write,
            self.attention,
            self.output,
            self.attention_residual,
            self.mlp_norm,
        ]
        return [
            *((method.__name__, method) for method in first),
            *self.feed_forward.operators(),
            ("mlp_residual", self.mlp_residual),
        ]

    def attention_norm(self, x: Pass) -> None:
        """Scale each token to unit size."""
        x.normed = rms_norm(x.hidden, self.attention_norm_weight, self.eps)

    def qkv(self, x: Pass) -> None:
        """Query, key and value of each token, in one product."""
        x.qkv = self.qkv_linear(x.normed)

    def qk_norm(self, x: Pass) -> None:
        """Scale each head's query and key (Qwen3)."""
        shape = self.layer.attention
        heads = x.qkv.view(x.qkv.shape[0], -1, shape.head_dim)
        for weight, first, count in (
            (self.query_norm_weight, 0, shape.num_heads),
            (self.key_norm_weight, shape.num_heads, shape.num_kv_heads),
        ):
            if weight is not None:
                part = heads[:, first : first + count]
                part.copy_(rms_norm(part, weight, self.eps))

    def rope(self, x: Pass) -> None:
        """Turn queries and keys by their positions."""
        shape = self.layer.attention
        heads = x.qkv.view(x.qkv.shape[0], -1, shape.head_dim)
        turn(heads[:, : shape.num_heads + shape.num_kv_heads], x.cosine, x.sine)

    def kv_write(self, x: Pass) -> None:
        """Keep the new keys and values in their slots."""
        fresh = x.qkv[:, self.layer.attention.query_features :]
        x.pool.layers[self.index].write(x.batch.slot_mapping, fresh)

    def attention(self, x: Pass) -> None:
        """Look at the cached tokens."""
        queries = x.qkv[:, : self.layer.attention.query_features]
        x.normed = self.attend(queries, x.pool.layers[self.index], self.layer.attention, x.batch)

    def output(self, x: Pass) -> None:
        """Mix the heads."""
        x.normed = self.output_linear(x.normed)

    def attention_residual(self, x: Pass) -> None:
        """Add to the stream."""
        x.hidden.add_(x.normed)

    def mlp_norm(self, x: Pass) -> None:
        """Scale each token to unit size."""
        x.normed = rms_norm(x.hidden, self.mlp_norm_weight, self.eps)

    def mlp_residual(self, x: Pass) -> None:
        """Add to the stream."""
        x.hidden.add_(x.normed)


@dataclass(slots=True)
class Transformer:
    """A whole decoder.

    Attributes:
        table: looks up embeddings. blocks: the layers. rope: rotary tables.
        final_norm_weight, head: what follows the layers.
    """

    table: EmbeddingTable
    blocks: list[Block]
    rope: RopeTable
    final_norm_weight: Tensor
    eps: float
    head: LinearKernel

    @property
    def attend(self) -> AttentionBackend:
        """How the layers read the cache; all of them share one backend."""
        return self.blocks[0].attend

    def operators(self) -> list[Operator]:
        """Every operator of a pass, in order, but the choice of the token."""
        layers = [operator for block in self.blocks for operator in block.operators()]
        ending: list[Operator] = [("final_norm", self.final_norm), ("lm_head", self.lm_head)]
        return [("embedding", self.embedding), *layers, *ending]

    def embedding(self, x: Pass) -> None:
        """Look up each token's vector, and its place in the rotary tables."""
        x.hidden = self.table(x.batch.token_ids)
        x.cosine, x.sine = self.rope.rows(x.batch.positions)

    def final_norm(self, x: Pass) -> None:
        """Only the last token of each sequence is asked for what follows."""
        rows = x.batch.logit_rows
        last = x.hidden if rows.shape[0] == x.hidden.shape[0] else x.hidden.index_select(0, rows)
        x.normed = rms_norm(last, self.final_norm_weight, self.eps)

    def lm_head(self, x: Pass) -> None:
        """A number for each word of the vocabulary."""
        x.logits = self.head(x.normed)


def rms_norm(rows: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimension.

    Computed as the layer norm of x beside -x: their mean is zero and their variance is the mean of
    ``x ** 2``. Torch has one fused kernel for that, and five small ones for its own rms_norm.
    """
    # torch's compiler makes its own kernel of what follows, and cannot look into ours.
    ours = None if torch.compiler.is_compiling() else native.rms_norm(rows, weight, eps)
    if ours is not None:
        return ours
    size = rows.shape[-1]
    both = torch.cat((rows, -rows), dim=-1)
    return functional.layer_norm(both, (2 * size,), None, None, eps)[..., :size] * weight
