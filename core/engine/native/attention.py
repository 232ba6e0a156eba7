"""Attention of one new token by our own kernel: see ``cpu_attention.cpp``.

torch's attention wants each head's keys in one place, so the cache is copied for it in every layer and step,
and formats of 8 bits are widened in memory. The kernel reads the slots where they are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.catalog.model import Attention
from core.engine.kv_cache import KVLayer, Where
from core.engine.native.binding import LANES, kernels


def attend(query: Tensor, layer: KVLayer, shape: Attention, where: Where) -> Tensor | None:
    """Attention of one new token over the cache, where it lies; None where torch must do it.

    Args:
        query: [1, H * D], rotated.
        layer: the slots.
        shape: heads.
        where: the slots of the tokens that it sees, in order.
    """
    cells, *scales = layer.tensors
    plain = cells.device.type == "cpu" and query.stride(-1) == 1 and shape.head_dim % LANES == 0
    found = kernels() if plain else None
    kernel = None if found is None else found.attend.get((query.dtype, cells.dtype))
    if kernel is None:
        return None
    if isinstance(where, slice):
        slots, first, count = None, where.start, where.stop - where.start
    else:
        where = where.contiguous()
        slots, first, count = where.data_ptr(), 0, where.shape[0]
    out = torch.empty(1, shape.query_features, dtype=query.dtype)
    extra = scales[0].data_ptr() if scales else None
    groups = shape.num_heads // shape.num_kv_heads
    addresses = query.data_ptr(), cells.data_ptr(), extra, slots, out.data_ptr()
    kernel(*addresses, first, count, shape.num_kv_heads, groups, shape.head_dim)
    return out
