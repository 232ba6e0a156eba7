"""Where the error arises: what a format takes from each layer's weights, activations, keys and values.

All of it is signal to quantisation noise in decibels, ``10 log10(sum x**2 / sum (x - q)**2)``, by layer and
operator; None where nothing was lost. Every rounding is the engine's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from core.analytic.params import weight_plan
from core.catalog.formats import engine_format
from core.engine.batch import Batch
from core.engine.batch import Sequence as TokenSequence
from core.engine.engine import Engine
from core.engine.files.checkpoint import EMBEDDING, HEAD, LAYER_PARTS, Checkpoint, layer_prefix
from core.engine.files.weight import Weight, stack
from core.engine.kv_cache import KVPool, make_layer
from core.engine.linear import DTYPES
from core.engine.quantise import float_rows8, groups4, groups8, rows8
from core.engine.transformer import Pass

#: What the activations are rounded like: the engine's own way, and one scale for all tokens beside it.
EACH_ROW: Final = "int8, one scale a token"
WHOLE: Final = "int8, one scale for all tokens"
#: Columns of the map of a cache.
KV_PARTS: Final = ("keys", "values")
#: Told before each layer how many are done, of how many; it may raise to stop.
OnLayer = Callable[[int, int], None]


@dataclass(slots=True)
class ErrorMap:
    """Signal to noise by layer and operator.

    Attributes:
        columns: operators, or keys and values. sqnr_db: [layers][columns]; None where nothing was lost.
        worst_db: the same of the worst output channel of a weight, or token of an activation.
    """

    columns: tuple[str, ...]
    sqnr_db: list[list[float | None]] = field(default_factory=list)
    worst_db: list[list[float | None]] = field(default_factory=list)

    def add(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Take in one layer: what each column is, and what became of it, both [rows, numbers]."""
        both = [_decibels(exact, rounded) for exact, rounded in pairs]
        self.sqnr_db.append([whole for whole, _ in both])
        self.worst_db.append([worst for _, worst in both])


def rounded(weight: Weight, exact: Tensor, fmt: str) -> Tensor:
    """A matrix [out, in] as the engine keeps it in a format, back in fp32.

    Args:
        weight: as its file keeps it.
        exact: the same in fp32.
        fmt: id of a weight format.

    Raises:
        FormatError: the engine has no such format, or this matrix does not fit it.
    """
    record = engine_format(fmt, "weights")
    if fmt in DTYPES:
        return exact.to(DTYPES[fmt]).float()
    if fmt == "int4":
        return groups4(weight).dense()
    if fmt == "int8-g32":
        return groups8(weight).dense()
    if fmt.startswith("fp8"):
        return float_rows8(exact, torch.bfloat16 if fmt == "fp8-weight-only" else torch.float32).dense()
    return rows8(exact, DTYPES[record.activations]).dense()


def weight_errors(
    checkpoint: Checkpoint, formats: Sequence[str], on_layer: OnLayer | None = None
) -> dict[str, ErrorMap]:
    """What each format takes from the layers' matrices, as the engine fuses them.

    Args:
        checkpoint: a model whose layers have one MLP each.
        formats: ids of weight formats.
        on_layer: told of the progress.
    """
    maps = {fmt: ErrorMap(tuple(LAYER_PARTS)) for fmt in formats}
    layers = checkpoint.spec.num_layers
    for index in range(layers):
        if on_layer is not None:
            on_layer(index, layers)
        matrices = [layer_matrix(checkpoint, index, operator) for operator in LAYER_PARTS]
        exact = [matrix.dense() for matrix in matrices]
        for fmt, found in maps.items():
            back = [rounded(matrix, plain, fmt) for matrix, plain in zip(matrices, exact, strict=True)]
            found.add(list(zip(exact, back, strict=True)))
    return maps


def layer_matrix(checkpoint: Checkpoint, index: int, operator: str) -> Weight:
    """The matrix of one operator of a layer, its projections on top of each other."""
    parts = LAYER_PARTS[operator]
    return stack([checkpoint.weights.weight(f"{layer_prefix(index)}{part}.weight") for part in parts])


def head_error(checkpoint: Checkpoint, weights: str) -> float | None:
    """What the format that a head has beside such weights takes from it."""
    name = EMBEDDING if checkpoint.spec.tied_embeddings else HEAD
    matrix = checkpoint.weights.weight(name)
    exact, plan = matrix.dense(), weight_plan(weights, checkpoint.spec)
    return _decibels(exact, rounded(matrix, exact, plan.head.id))[0]


@torch.inference_mode()
def activation_errors(
    engine: Engine, ids: Sequence[int], kv_formats: Sequence[str]
) -> tuple[dict[str, ErrorMap], dict[str, ErrorMap]]:
    """What rounding takes from what flows through the model while it reads a text.

    The engine should be the reference, so that each number tells of one rounding alone.

    Returns:
        The inputs of the layers' products in 8 bits, by ``EACH_ROW`` and ``WHOLE``; and keys and values
        in each cache format, as they are written and read back.
    """
    taps = _Taps(engine, tuple(kv_formats))
    batch = Batch.build([(TokenSequence(list(ids)), len(ids))], engine.device)
    values = Pass(batch, KVPool(engine.spec, len(ids), engine.kv, engine.device))
    for name, operator in engine.model.operators():
        taps.before(name, values)
        operator(values)
    return taps.inputs, taps.caches


class _Taps:
    """Collects what the operators are about to read, layer by layer."""

    def __init__(self, engine: Engine, kv_formats: tuple[str, ...]) -> None:
        self.inputs = {name: ErrorMap(tuple(LAYER_PARTS)) for name in (EACH_ROW, WHOLE)}
        self.caches = {kv: ErrorMap(KV_PARTS) for kv in kv_formats}
        self._engine = engine
        self._seen: list[Tensor] = []

    def before(self, name: str, values: Pass) -> None:
        if name == "kv_write":
            self._cache(values)
        if name not in LAYER_PARTS:
            return
        self._seen.append((values.wide if name == "down" else values.normed).float().clone())
        if len(self._seen) == len(LAYER_PARTS):
            for found, whole in ((self.inputs[EACH_ROW], False), (self.inputs[WHOLE], True)):
                found.add([(seen, _bytes(seen, whole=whole)) for seen in self._seen])
            self._seen.clear()

    def _cache(self, values: Pass) -> None:
        engine = self._engine
        layer = len(next(iter(self.caches.values())).sqnr_db) if self.caches else 0
        shape = engine.spec.layers[layer].attention
        fresh = values.qkv[:, shape.query_features :].float()
        slots = torch.arange(fresh.shape[0], device=engine.device)
        exact = fresh.view(-1, 2, shape.kv_features).unbind(1)
        for kv, found in self.caches.items():
            kept = make_layer(fresh.shape[0], shape, kv, engine.device)
            kept.write(slots, fresh)
            back = kept.read(slice(0, fresh.shape[0]), torch.float32).float()  # [2, K, S, D]
            parts = back.permute(0, 2, 1, 3).reshape(2, fresh.shape[0], -1)
            found.add(list(zip(exact, parts.unbind(), strict=True)))


def _bytes(rows: Tensor, *, whole: bool) -> Tensor:
    """Rows in 8 bits and back, as int8 dynamic rounds them, or with one scale for all of them."""
    if whole:
        return rows8(rows.reshape(1, -1), torch.float32).dense().view(rows.shape)
    return rows8(rows, torch.float32).dense()


def _decibels(exact: Tensor, back: Tensor) -> tuple[float | None, float | None]:
    """Of the whole matrix, and of its worst row."""
    rows = (torch.linalg.vector_norm(part, dim=1) for part in (exact, exact - back))
    signal, noise = (norms.double().square() for norms in rows)
    by_row = (signal / noise).nan_to_num_(nan=math.inf, posinf=math.inf)
    return _ratio(signal.sum().item(), noise.sum().item()), _ratio(by_row.min().item(), 1.0)


def _ratio(signal: float, noise: float) -> float | None:
    if noise == 0 or math.isinf(signal):
        return None
    return 10 * math.log10(max(signal / noise, 1e-30))
