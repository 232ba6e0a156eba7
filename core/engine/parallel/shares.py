"""The tensors of one process, cut out of the whole model's as they are asked for.

A product that begins a part (Q, K and V; gate and up) is cut by rows of its matrix, so each process
makes some heads and some columns by itself; one that ends a part (output, down) is cut by columns, so
each process makes a part of a sum. Norms and routers are whole.
"""

from __future__ import annotations

from typing import Final

import torch

from core.analytic.parallel import ParallelPlan, stages
from core.catalog.model import ModelSpec
from core.engine.files.checkpoint import EMBEDDING, FINAL_NORM, HEAD, WeightSource, layer_prefix
from core.engine.files.weight import BLOCK, BLOCK_BYTES, Weight

#: The last part of a tensor's name: those cut by rows, and those cut by columns.
_BY_ROWS: Final = frozenset({"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "w1", "w3"})
_BY_COLUMNS: Final = frozenset({"o_proj", "down_proj", "w2"})


def share(count: int, tp: int, place: int) -> tuple[int, int]:
    """First and last (excluded) of ``count`` heads or columns that the process at ``place`` holds.

    Where there are fewer than processes, neighbours hold the same one.

    >>> share(9, 3, 1), share(3, 9, 7)
    ((3, 6), (2, 3))
    """
    first = place * count // tp
    return first, first + max(count // tp, 1)


class ShareOfWeights:
    """A source of one process's tensors, under the names of a model that has only its layers."""

    def __init__(
        self, source: WeightSource, spec: ModelSpec, plan: ParallelPlan, stage: int, place: int
    ) -> None:
        every = stages(spec, plan)
        self._source, self._spec, self._stage = source, spec, every[stage]
        self._first_layer = sum(len(before.whole_layers) for before in every[:stage])
        self._tp, self._place = plan.tp, place

    def weight(self, name: str) -> Weight:
        """Give the share of the tensor of this name."""
        if name == FINAL_NORM:
            return self._source.weight(name)
        if name in {EMBEDDING, HEAD}:
            return self._vocabulary(name)
        local, rest = name.removeprefix("model.layers.").split(".", 1)
        whole = self._source.weight(layer_prefix(self._first_layer + int(local)) + rest)
        part, kind = rest.rsplit(".", 2)[-2:]
        if part in _BY_ROWS:
            return _rows(whole, *self._cut(rest, whole.shape[0]))
        if part not in _BY_COLUMNS:
            return whole
        if kind == "weight":
            return _columns(whole, *self._cut(rest, whole.shape[1]))
        # Every process adds to one sum: the bias counts once.
        return whole if self._place == 0 else Weight(torch.zeros_like(whole.data))

    def _cut(self, name: str, features: int) -> tuple[int, int]:
        """The rows or columns of a matrix with so many; those of attention stay whole heads."""
        unit = self._spec.layers[0].attention.head_dim if name.startswith("self_attn") else 1
        first, last = share(features // unit, self._tp, self._place)
        return first * unit, last * unit

    def _vocabulary(self, name: str) -> Weight:
        """Rows of the table or the head, zeros behind the last; nearly nothing where a stage needs none."""
        stage, width = self._stage, self._spec.hidden_size
        tied = self._spec.tied_embeddings
        needed = (stage.first or (stage.last and tied)) if name == EMBEDDING else stage.last
        if not needed:
            return Weight(torch.zeros(1, width))
        rows = stage.shard.vocab_size
        whole = self._source.weight(name)
        mine = _rows(whole, self._place * rows, (self._place + 1) * rows)
        missing = rows - mine.shape[0]
        zeros = mine.data.new_zeros(missing, mine.data.shape[1])  # blocks of zeros stand for zeros
        return Weight(torch.cat((mine.data, zeros)), mine.encoding)


def _rows(weight: Weight, first: int, last: int) -> Weight:
    return Weight(weight.data[first:last], weight.encoding)


def _columns(weight: Weight, first: int, last: int) -> Weight:
    """Some columns; blocks of a file stay blocks where the cut lies between them."""
    if weight.encoding == "plain":
        return Weight(weight.data[:, first:last].contiguous())
    if first % BLOCK or last % BLOCK:
        return Weight(weight.dense()[:, first:last].contiguous())
    size = BLOCK_BYTES[weight.encoding]
    cut = weight.data[:, first // BLOCK * size : last // BLOCK * size]
    return Weight(cut.contiguous(), weight.encoding)
