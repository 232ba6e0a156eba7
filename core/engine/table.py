"""Embedding tables: the vectors of some tokens, read row by row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.engine.quantise import Groups8


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table in the format of the activations, [V, E]."""

    weight: Tensor

    def __call__(self, ids: Tensor) -> Tensor:
        """Vectors of ``ids`` [T]; [T, E]."""
        return self.weight.index_select(0, ids)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What it keeps."""
        return (self.weight,)


@dataclass(frozen=True, slots=True)
class ByteTable:
    """A table of int8 rows with one scale each, dequantised as they are read."""

    weight: Tensor  # [V, E] int8
    scale: Tensor  # [V] bf16
    dtype: torch.dtype

    def __call__(self, ids: Tensor) -> Tensor:
        """Vectors of ``ids`` [T]; [T, E]."""
        rows = self.weight.index_select(0, ids).to(self.dtype)
        return rows.mul_(self.scale.index_select(0, ids).to(self.dtype).unsqueeze(1))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What it keeps."""
        return (self.weight, self.scale)


@dataclass(frozen=True, slots=True)
class GroupedByteTable:
    """A table of int8 rows with a scale for each 32 numbers, dequantised as they are read."""

    groups: Groups8
    dtype: torch.dtype

    def __call__(self, ids: Tensor) -> Tensor:
        """Vectors of ``ids`` [T]; [T, E]."""
        return Groups8(*(part.index_select(0, ids) for part in self.tensors)).dense().to(self.dtype)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What it keeps."""
        return (self.groups.bytes, self.groups.scale)


EmbeddingTable = PlainTable | ByteTable | GroupedByteTable
