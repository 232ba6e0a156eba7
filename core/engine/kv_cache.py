"""Keys and values that are kept: a pool of slots, one for each token, in each layer.

A slot holds a token's key and its value side by side, ``[slots, 2 * K * D]``: the fused QKV product
leaves them in this order, so one copy stores both. The pool is token-major so that pages can later
be gathered with one index per token; a contiguous cache is the case of one page a sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.catalog.model import ModelSpec


class KVPool:
    """The memory of the cache.

    Attributes:
        layers: one tensor ``[slots, 2 * K * D]`` for each layer. dtype: the format it is kept in.
    """

    def __init__(self, spec: ModelSpec, slots: int, dtype: torch.dtype, device: torch.device) -> None:
        self.num_slots = slots
        self.dtype = dtype
        self.layers: list[Tensor] = [
            torch.zeros(slots, 2 * layer.attention.kv_features, dtype=dtype, device=device)
            for layer in spec.layers
        ]

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole pool."""
        return sum(layer.nbytes for layer in self.layers)

    def traffic_bytes(self, read: list[int], written: int) -> tuple[int, int]:
        """Bytes that a step reads and writes, on the real tensors.

        Args:
            read: slots that each layer's attention reads.
            written: slots that are filled, the same in each layer.
        """
        slot_bytes = [layer.shape[1] * layer.element_size() for layer in self.layers]
        reads = sum(slots * size for slots, size in zip(read, slot_bytes, strict=True))
        return reads, written * sum(slot_bytes)
