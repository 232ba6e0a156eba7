"""A whole step of a dense decoder in one call of C++, where every matrix has one of our kernels.

A small model's step is hundreds of small operators, and on a processor calling them costs as much as what
they do. ``cpu_step.cpp`` runs the same operators, in the same order and under the same names, in one call;
what lies here hands it the addresses. Numbers between operators are fp32 there.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from core.engine.batch import Batch
from core.engine.feed_forward import MLP
from core.engine.kernels import LinearKernel
from core.engine.kv_cache import KVPool
from core.engine.native.binding import LANES, Kernels, kernels
from core.engine.native.products import Matrix, NativeLinear, TiledLinear
from core.engine.transformer import Block, Pass, Transformer

#: With more rows, a product that unpacks its matrix once for all of them is faster, and the small operators
#: are no longer small. Matrices in tiles are faster for longer: when a prompt joins others that write, say.
MOST_ROWS: Final = 16
MOST_TILED_ROWS: Final = 128
#: The cache's formats, as the C++ numbers them.
_CACHES: Final = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.int8: 3, torch.uint8: 4}


class _Layer(ctypes.Structure):
    _fields_ = (
        *((f"{name}_norm", ctypes.c_void_p) for name in ("attention", "mlp", "query", "key")),
        *((name, Matrix) for name in ("qkv", "output", "gate_up", "down")),
        *((name, ctypes.c_void_p) for name in ("cells", "cell_scales", "cell_zeros")),
        *((name, ctypes.c_int64) for name in ("heads", "kv_heads", "size", "window")),
    )


class _Model(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.c_void_p),
        ("num_layers", ctypes.c_int64),
        ("final_norm", ctypes.c_void_p),
        ("head", Matrix),
        ("hidden", ctypes.c_int64),
        ("cache_format", ctypes.c_int64),
        ("eps", ctypes.c_float),
    )


class _Row(ctypes.Structure):
    _fields_ = (("slots", ctypes.c_void_p), ("first", ctypes.c_int64), ("count", ctypes.c_int64))


class _Step(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("stream", "cosine", "sine", "targets", "rows", "wanted")),
        *((name, ctypes.c_int64) for name in ("num_rows", "num_wanted")),
        *(
            (name, ctypes.c_void_p)
            for name in ("qkv", "attended", "mixed", "wide", "logits", "parts", "times")
        ),
    )


@dataclass(slots=True)
class _Kept:
    """Tensors whose addresses the C++ has."""

    tensors: list[Tensor] = field(default_factory=list)

    def address(self, tensor: Tensor | None) -> int | None:
        """Of the numbers in fp32; None for none."""
        if tensor is None:
            return None
        self.tensors.append(tensor.float().contiguous())
        return self.tensors[-1].data_ptr()

    def matrix(self, kernel: LinearKernel) -> Matrix:
        """A kernel's matrix, with its bias."""
        if not isinstance(kernel, NativeLinear):
            raise TypeError(f"{kernel.name} has no matrix for a step in C++")
        of = kernel.matrix
        self.tensors += kernel.tensors
        return Matrix(of.numbers, of.scales, self.address(kernel.bias), of.outputs, of.inputs, of.format)


class NativeStep:
    """Runs steps of few rows through a transformer in one call each.

    Attributes:
        operators: names of what a step runs after the embedding, in order.
        most_rows: with more, the products of one operator after the other are faster here.
    """

    def __init__(self, model: Transformer, found: Kernels) -> None:
        self._model, self._kernels, self._kept = model, found, _Kept()
        blocks, keep = model.blocks, self._kept
        self._layers = (_Layer * len(blocks))(*(_layer(block, keep) for block in blocks))
        self._whole = _Model(
            ctypes.addressof(self._layers),
            len(blocks),
            keep.address(model.final_norm_weight),
            keep.matrix(model.head),
            model.final_norm_weight.shape[0],
            0,
            model.eps,
        )
        self.operators = [name for name, _ in model.operators()[1:]]
        tiled = all(isinstance(kernel, TiledLinear) for kernel in _linears(blocks[0]))
        self.most_rows = MOST_TILED_ROWS if tiled else MOST_ROWS
        self._pool: weakref.ref[KVPool] | None = None
        self._widest = [max(sizes) for sizes in zip(*(_widths(block) for block in blocks), strict=True)]
        self._room: dict[str, Tensor] = {}

    def takes(self, batch: Batch) -> bool:
        """Whether this step is its own: few rows."""
        return batch.new_tokens <= self.most_rows

    @torch.inference_mode()
    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """One forward pass; see ``StepRunner``."""
        values = Pass(batch, pool)
        self._model.embedding(values)
        self.finish(values)
        return values

    def finish(self, values: Pass, times: Tensor | None = None) -> None:
        """Everything after the embedding.

        Args:
            values: what the embedding left.
            times: gets the seconds of each of ``operators``, [len(operators)] fp64.
        """
        batch = values.batch
        self._bind(values.pool)
        rows = _rows(batch)
        values.hidden = values.hidden.float()
        values.cosine, values.sine = values.cosine.float(), values.sine.float()
        parts = sum(self._kernels.step_parts(row.count) for row in rows)
        qkv, attended, mixed, wide = self._shared(batch.new_tokens)
        values.qkv, values.normed, values.wide = qkv, mixed, wide
        values.logits = torch.empty(batch.logit_rows.shape[0], self._whole.head.outputs)
        step = _Step(
            *(
                tensor.data_ptr()
                for tensor in (values.hidden, values.cosine, values.sine, batch.slot_mapping)
            ),
            ctypes.addressof(rows),
            batch.logit_rows.data_ptr(),
            len(rows),
            batch.logit_rows.shape[0],
            *(tensor.data_ptr() for tensor in (qkv, attended, mixed, wide, values.logits)),
            self._buffer("parts", parts * self._widest[4]).data_ptr(),
            None if times is None else times.data_ptr(),
        )
        self._kernels.run_step(ctypes.byref(self._whole), ctypes.byref(step))

    def timed(self, values: Pass) -> list[tuple[str, float]]:
        """Everything after the embedding, and the seconds of each operator."""
        times = torch.empty(len(self.operators), dtype=torch.float64)
        self.finish(values, times)
        return list(zip(self.operators, times.tolist(), strict=True))

    def _shared(self, rows: int) -> list[Tensor]:
        """Room for what all threads read, as wide as the widest layer, [rows, width]."""
        names = ("qkv", "attended", "mixed", "wide")
        return [
            self._buffer(name, rows * width)[: rows * width].view(rows, width)
            for name, width in zip(names, self._widest, strict=False)
        ]

    def _buffer(self, name: str, numbers: int) -> Tensor:
        """Memory that the next step uses again."""
        if name not in self._room or self._room[name].numel() < numbers:
            self._room[name] = torch.empty(numbers)
        return self._room[name]

    def _bind(self, pool: KVPool) -> None:
        """Tell the layers where their slots are."""
        if self._pool is not None and self._pool() is pool:
            return
        for layer, block in zip(self._layers, self._model.blocks, strict=True):
            cells, *scales = pool.layers[block.index].tensors
            layer.cells = cells.data_ptr()
            layer.cell_scales = scales[0].data_ptr() if scales else None
            layer.cell_zeros = scales[1].data_ptr() if len(scales) > 1 else None
        self._whole.cache_format = _CACHES[pool.layers[0].tensors[0].dtype]
        self._pool = weakref.ref(pool)


def native_step(model: Transformer) -> NativeStep | None:
    """A step in C++ for this model; None where an operator of it has no such kernel."""
    found = kernels()
    if found is None or not all(_fits(block) for block in model.blocks):
        return None
    sizes = {block.layer.attention.head_dim for block in model.blocks}
    if (
        not isinstance(model.head, NativeLinear)
        or len(sizes) != 1
        or model.final_norm_weight.shape[0] % LANES
    ):
        return None
    return NativeStep(model, found)


def _fits(block: Block) -> bool:
    if type(block) is not Block or not isinstance(block.feed_forward, MLP):
        return False
    native = all(isinstance(kernel, NativeLinear) for kernel in _linears(block))
    sizes = block.layer.attention.head_dim, block.layer.mlp.intermediate_size if native else 1
    return native and not any(size % LANES for size in sizes)


def _linears(block: Block) -> list[Any]:
    products = [kernel for kernels in block.feed_forward.kernels().values() for kernel in kernels]
    return [block.qkv_linear, block.output_linear, *products]


def _widths(block: Block) -> tuple[int, int, int, int, int]:
    """Numbers of a row between operators: qkv, attended, mixed, gate and up; and of a part of attention."""
    shape = block.layer.attention
    qkv, output, gate_up, _ = (kernel.matrix for kernel in _linears(block))
    part = shape.num_heads * (2 + shape.head_dim)
    return qkv.outputs, shape.query_features, output.outputs, gate_up.outputs, part


def _layer(block: Block, keep: _Kept) -> _Layer:
    shape = block.layer.attention
    norms = (
        block.attention_norm_weight,
        block.mlp_norm_weight,
        block.query_norm_weight,
        block.key_norm_weight,
    )
    return _Layer(
        *(keep.address(norm) for norm in norms),
        *(keep.matrix(kernel) for kernel in _linears(block)),
        None,
        None,
        None,
        shape.num_heads,
        shape.num_kv_heads,
        shape.head_dim,
        shape.window or 0,
    )


def _rows(batch: Batch) -> ctypes.Array[_Row]:
    """What each row sees: its own token and all before it."""
    rows = []
    for span in batch.spans:
        slots = None if span.slots is None else span.slots.data_ptr()
        before = span.context - span.new_tokens
        rows += [_Row(slots, span.first_slot, before + 1 + index) for index in range(span.new_tokens)]
    return (_Row * len(rows))(*rows)
