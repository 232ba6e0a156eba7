"""Attention over a paged cache on a GPU, in one launch for all sequences: a kernel in Triton.

A decode step reads every key and value once and does little with them, so what counts is that all of the
GPU reads at the same time. A program takes one query row, one key head with the query heads that share it,
and a part of the tokens (split-KV, the idea of Flash-Decoding); a second kernel joins the parts. Pages are
found through the block table, and int8 is widened in registers: its scales multiply scores and weights.
"""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from core.catalog.model import Attention
from core.engine.gpu.block_table import BlockTable, power_of_two
from core.engine.kv_cache import KVLayer

#: Tokens that a program reads at a time.
_TILE: Final = 64
#: The fewest rows and columns that a product of tiles takes.
_LEAST: Final = 16
#: Programs that keep a large GPU busy, and the most parts of one row.
_PROGRAMS: Final = 512
_MOST_PARTS: Final = 32


@triton.jit  # type: ignore[untyped-decorator]
def _read(  # type: ignore[no-untyped-def]
    cells,  # [slots, HEADS * SIZE]
    scales,  # [slots, HEADS] where cells are int8
    slot,  # [TILE]
    seen,  # [TILE]
    head,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
    IS_BYTE: tl.constexpr,
):
    """A tile of one head's keys, or values: its numbers [TILE, COLUMNS], and a scale for each token."""
    column = tl.arange(0, COLUMNS)
    place = slot[:, None] * (HEADS * SIZE) + head * SIZE + column[None, :]
    numbers = tl.load(cells + place, mask=seen[:, None] & (column < SIZE)[None, :], other=0)
    scale = tl.where(seen, 1.0, 0.0)
    if IS_BYTE:
        scale = tl.load(scales + slot * HEADS + head, mask=seen, other=0.0).to(tl.float32)
    return numbers, scale


@triton.jit  # type: ignore[untyped-decorator]
def _attend_part(  # type: ignore[no-untyped-def]
    queries,  # [R, H * SIZE]
    cells,  # [slots, HEADS * SIZE]
    scales,  # [slots, HEADS] where cells are int8
    blocks,  # [R, 1 + P]
    sums,  # [R, H, parts, SIZE]
    highs,  # [R, H, parts]
    totals,  # [R, H, parts]
    factor,  # of the scores
    query_stride,
    block_stride,
    HEADS: tl.constexpr,  # of keys, then of values
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    PAGE: tl.constexpr,
    WINDOW: tl.constexpr,
    IS_BYTE: tl.constexpr,
    FACTORS: tl.constexpr,  # the type of what is multiplied
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TILE: tl.constexpr,
):
    row, head, part, parts = tl.program_id(0), tl.program_id(1), tl.program_id(2), tl.num_programs(2)
    begin, end = _share(tl.load(blocks + row * block_stride).to(tl.int32), part, parts, WINDOW, TILE)
    group, column, token = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, TILE)
    mine = (head * GROUP + group)[:, None] * SIZE + column[None, :]
    kept = (group < GROUP)[:, None] & (column < SIZE)[None, :]
    q = tl.load(queries + row * query_stride + mine, mask=kept, other=0.0)
    high, total = tl.full([ROWS], float("-inf"), tl.float32), tl.zeros([ROWS], tl.float32)
    weighted = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(begin, end, TILE):
        place, seen = start + token, start + token < end
        page = tl.load(blocks + row * block_stride + 1 + place // PAGE, mask=seen, other=0)
        slot = page + place % PAGE
        k, scale = _read(cells, scales, slot, seen, head, HEADS, SIZE, COLUMNS, IS_BYTE)
        k = k.to(tl.float32).to(q.dtype).to(FACTORS)
        scores = tl.dot(q.to(FACTORS), tl.trans(k), input_precision="ieee") * (scale * factor)[None, :]
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(high, tl.max(scores, 1))
        weights, shrink = tl.exp(scores - higher[:, None]), tl.exp(high - higher)
        total = total * shrink + tl.sum(weights, 1)
        v, scale = _read(cells, scales, slot, seen, HEADS // 2 + head, HEADS, SIZE, COLUMNS, IS_BYTE)
        v = v.to(tl.float32).to(q.dtype).to(FACTORS)
        weights = (weights * scale[None, :]).to(q.dtype).to(FACTORS)
        weighted = weighted * shrink[:, None] + tl.dot(weights, v, input_precision="ieee")
        high = higher
    index = ((row * (HEADS // 2) + head) * GROUP + group) * parts + part
    tl.store(highs + index, high, mask=group < GROUP)
    tl.store(totals + index, total, mask=group < GROUP)
    tl.store(sums + index[:, None] * SIZE + column[None, :], weighted, mask=kept)


@triton.jit  # type: ignore[untyped-decorator]
def _share(length, part, parts, WINDOW: tl.constexpr, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    """The tokens of one part: whole tiles, so that only the last part has a ragged one."""
    first = length * 0
    if WINDOW:
        first = tl.maximum(length - WINDOW, 0)
    share = tl.cdiv(tl.cdiv(length - first, parts), TILE) * TILE
    begin = first + part * share
    return begin, tl.minimum(begin + share, length)


@triton.jit  # type: ignore[untyped-decorator]
def _join_parts(  # type: ignore[no-untyped-def]
    sums,  # [R * H, parts, SIZE]
    highs,  # [R * H, parts]
    totals,  # [R * H, parts]
    out,  # [R * H, SIZE]
    parts,
    SIZE: tl.constexpr,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    query, part, column = tl.program_id(0), tl.arange(0, PARTS), tl.arange(0, COLUMNS)
    index, there = query * parts + part, part < parts
    high = tl.load(highs + index, mask=there, other=float("-inf"))
    weight = tl.exp(high - tl.max(high, 0))  # nought for a part without tokens
    total = tl.sum(tl.load(totals + index, mask=there, other=0.0) * weight, 0)
    both = there[:, None] & (column < SIZE)[None, :]
    weighted = tl.load(sums + index[:, None] * SIZE + column[None, :], mask=both, other=0.0)
    joined = tl.sum(weighted * weight[:, None], 0) / total
    tl.store(out + query * SIZE + column, joined.to(out.dtype.element_ty), mask=column < SIZE)


def triton_rows(queries: Tensor, layer: KVLayer, shape: Attention, blocks: BlockTable) -> Tensor:
    """See ``RowAttention``; the cache in fp32, bf16, fp16 or int8.

    The grid depends on shapes alone, never on a length, so a captured launch holds for every step.
    """
    cells, *scales = layer.tensors
    rows, heads, size = blocks.num_rows, shape.num_heads, shape.head_dim
    parts = num_parts(rows * shape.num_kv_heads, blocks.num_pages * blocks.page_tokens)
    sums = torch.empty(rows, heads, parts, size, dtype=torch.float32, device=queries.device)
    highs, totals = sums.new_empty(2, rows, heads, parts).unbind()
    out = torch.empty(rows, heads * size, dtype=queries.dtype, device=queries.device)
    columns = max(power_of_two(size), _LEAST)
    group = heads // shape.num_kv_heads
    part: Any = _attend_part[(rows, shape.num_kv_heads, parts)]
    part(
        queries,
        cells,
        scales[0] if scales else cells,
        blocks.cells,
        sums,
        highs,
        totals,
        size**-0.5,
        queries.stride(0),
        blocks.cells.stride(0),
        HEADS=2 * shape.num_kv_heads,
        GROUP=group,
        SIZE=size,
        PAGE=blocks.page_tokens,
        WINDOW=shape.window or 0,
        IS_BYTE=bool(scales),
        FACTORS=_factors(queries.dtype),
        ROWS=max(power_of_two(group), _LEAST),
        COLUMNS=columns,
        TILE=_TILE,
    )
    join: Any = _join_parts[(rows * heads,)]
    join(sums, highs, totals, out, parts, SIZE=size, PARTS=power_of_two(parts), COLUMNS=columns)
    return out


def _factors(dtype: torch.dtype) -> object:
    """The type in which numbers are multiplied: theirs, but Triton's interpreter has no products of bf16."""
    return tl.float32 if triton.knobs.runtime.interpret else getattr(tl, str(dtype).removeprefix("torch."))


def num_parts(programs: int, tokens: int) -> int:
    """Into how many parts the tokens are split: enough to fill a GPU, each of a tile or more.

    >>> num_parts(8, 4096), num_parts(1024, 4096), num_parts(8, 16)
    (32, 1, 1)
    """
    wanted = min(_PROGRAMS // programs, -(-tokens // _TILE), _MOST_PARTS)
    return power_of_two(max(wanted, 1))
