"""Keys and values that are kept: a pool of slots, one for each token, in each layer.

A slot holds a token's key and its value side by side, ``[slots, 2 * K * D]``: the fused QKV product
leaves them in this order, so one copy stores both. The pool is token-major, so that the pages of a
sequence are gathered with one index for each token. Formats of 8 and 4 bits keep their scales in
tensors of their own beside the numbers; they save memory, and on a CPU they cost time.
"""

from __future__ import annotations

from typing import Final, Protocol

import torch
from torch import Tensor

from core.catalog.formats import engine_format
from core.catalog.model import Attention, ModelSpec
from core.engine.linear import DTYPES
from core.engine.pages import Copy
from core.engine.quantise import GROUP, MIDDLE, groups4, rows8
from core.errors import FormatError

#: Some slots of a pool: a slice where they follow one another, an index [S] where they do not.
Where = slice | Tensor


class KVLayer(Protocol):
    """The slots of one layer in some format."""

    tensors: tuple[Tensor, ...]  # each [slots, ...]

    def write(self, slots: Tensor, fresh: Tensor) -> None:
        """Keep the keys and values ``fresh`` [T, 2 * K * D] in ``slots`` [T]."""

    def read(self, where: Where, dtype: torch.dtype) -> Tensor:
        """Keys and values of some slots, [2, K, S, D]; ``dtype`` is that of any arithmetic it needs."""


class PlainLayer:
    """Numbers as they are: fp32, bf16, fp16."""

    def __init__(self, slots: int, shape: Attention, dtype: torch.dtype, device: torch.device) -> None:
        self._shape = (-1, 2, shape.num_kv_heads, shape.head_dim)
        self._cells = torch.zeros(slots, 2 * shape.kv_features, dtype=dtype, device=device)
        self.tensors: tuple[Tensor, ...] = (self._cells,)

    def write(self, slots: Tensor, fresh: Tensor) -> None:
        """See ``KVLayer``."""
        cells = self._cells
        cells.index_copy_(0, slots, fresh if fresh.dtype == cells.dtype else fresh.to(cells.dtype))

    def read(self, where: Where, dtype: torch.dtype) -> Tensor:
        """See ``KVLayer``; a view where the slots follow one another."""
        del dtype
        return _picked(self._cells, where).view(self._shape).permute(1, 2, 0, 3)


class ByteLayer:
    """int8, symmetric, one bf16 scale for each token and head, separately for keys and values."""

    def __init__(self, slots: int, shape: Attention, device: torch.device) -> None:
        self._shape = (-1, 2, shape.num_kv_heads, shape.head_dim)
        heads = 2 * shape.num_kv_heads
        self._cells = torch.zeros(slots, heads * shape.head_dim, dtype=torch.int8, device=device)
        self._scale = torch.zeros(slots, heads, dtype=torch.bfloat16, device=device)
        self.tensors: tuple[Tensor, ...] = (self._cells, self._scale)

    def write(self, slots: Tensor, fresh: Tensor) -> None:
        """See ``KVLayer``."""
        rows = rows8(fresh.reshape(-1, self._shape[-1]).float(), torch.bfloat16)
        self._cells.index_copy_(0, slots, rows.bytes.view(fresh.shape))
        self._scale.index_copy_(0, slots, rows.scale.view(fresh.shape[0], -1))

    def read(self, where: Where, dtype: torch.dtype) -> Tensor:
        """See ``KVLayer``."""
        scale = _picked(self._scale, where).to(dtype).view(*self._shape[:-1], 1)
        return (_picked(self._cells, where).view(self._shape) * scale).permute(1, 2, 0, 3)


class NibbleLayer:
    """int4, two numbers a byte, asymmetric, a bf16 scale and zero for each 32 numbers of a head."""

    def __init__(self, slots: int, shape: Attention, device: torch.device) -> None:
        if shape.head_dim % GROUP:
            raise FormatError(
                f"An int4 cache needs heads whose width is a multiple of {GROUP}; this model's have "
                f"{shape.head_dim}. Choose int8 or a 16-bit format for the cache."
            )
        self._shape = (-1, 2, shape.num_kv_heads, shape.head_dim)
        numbers = 2 * shape.kv_features
        self._cells = torch.zeros(slots, numbers // 2, dtype=torch.uint8, device=device)
        self._scale, self._zero = torch.zeros(
            2, slots, numbers // GROUP, dtype=torch.bfloat16, device=device
        ).unbind()
        self.tensors: tuple[Tensor, ...] = (self._cells, self._scale, self._zero)

    def write(self, slots: Tensor, fresh: Tensor) -> None:
        """See ``KVLayer``."""
        groups = groups4(fresh.float())
        self._cells.index_copy_(0, slots, groups.nibbles[:, ::2] | groups.nibbles[:, 1::2] << 4)
        self._scale.index_copy_(0, slots, groups.scale)
        self._zero.index_copy_(0, slots, groups.zero)

    def read(self, where: Where, dtype: torch.dtype) -> Tensor:
        """See ``KVLayer``."""
        pairs = _picked(self._cells, where)
        nibbles = torch.stack((pairs & 15, pairs >> 4), dim=-1).to(dtype).sub_(MIDDLE)
        scale, zero = (_picked(part, where).to(dtype).unsqueeze(-1) for part in (self._scale, self._zero))
        grouped = nibbles.view(*scale.shape[:-1], GROUP)
        return grouped.mul_(scale).add_(zero).view(self._shape).permute(1, 2, 0, 3)


def _picked(cells: Tensor, where: Where) -> Tensor:
    return cells[where] if isinstance(where, slice) else cells.index_select(0, where)


def make_layer(slots: int, shape: Attention, kv: str, device: torch.device) -> KVLayer:
    """The slots of one layer in a format.

    Raises:
        FormatError: the engine has no such cache, or the model's heads do not fit it.
    """
    engine_format(kv, "kv")
    if kv in DTYPES:
        return PlainLayer(slots, shape, DTYPES[kv], device)
    return (ByteLayer if kv == "int8" else NibbleLayer)(slots, shape, device)


class KVPool:
    """The memory of the cache.

    Attributes:
        layers: the slots of each layer. num_slots: how many there are.
    """

    def __init__(self, spec: ModelSpec, slots: int, kv: str, device: torch.device) -> None:
        self.num_slots = slots
        self.layers = [make_layer(slots, layer.attention, kv, device) for layer in spec.layers]
        self._slot_bytes: Final = [
            sum(tensor.nbytes for tensor in layer.tensors) // slots for layer in self.layers
        ]

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole pool."""
        return sum(self._slot_bytes) * self.num_slots

    def traffic_bytes(self, read: list[int], written: int) -> tuple[int, int]:
        """Bytes that a step reads and writes, on the real tensors.

        Args:
            read: slots that each layer's attention reads.
            written: slots that are filled, the same in each layer.
        """
        reads = sum(slots * size for slots, size in zip(read, self._slot_bytes, strict=True))
        return reads, written * sum(self._slot_bytes)

    def copy_pages(self, copies: list[Copy], page_tokens: int) -> None:
        """Copy whole pages, in every layer."""
        for source, target in copies:
            for tensor in (tensor for layer in self.layers for tensor in layer.tensors):
                first, after = source * page_tokens, target * page_tokens
                tensor[after : after + page_tokens] = tensor[first : first + page_tokens]
