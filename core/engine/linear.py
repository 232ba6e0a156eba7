"""Matrix products by weight format: the first seam."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from core.engine.weight import Weight
from core.errors import FormatError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class LinearKernel(Protocol):
    """A packed matrix and the way to multiply by it."""

    name: str

    def __call__(self, rows: Tensor) -> Tensor:
        """``rows @ weight.T + bias``; [M, in] -> [M, out]."""

    @property
    def num_bytes(self) -> int:
        """Bytes of everything that one product reads of it, counted on the real tensors."""


class PlainLinear:
    """The matrix as it is, by the library's product."""

    name = "F.linear"

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight
        self.bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        """See ``LinearKernel``."""
        return functional.linear(rows, self.weight, self.bias)

    @property
    def num_bytes(self) -> int:
        """See ``LinearKernel``."""
        return self.weight.nbytes + (0 if self.bias is None else self.bias.nbytes)


def make_linear(
    weight: Tensor | Weight, fmt: str, device: torch.device | str, *, bias: Tensor | None = None
) -> LinearKernel:
    """Pack ``weight`` [out, in] in a format and choose how to multiply by it on a device.

    Raises:
        FormatError: this device has no kernel for the format.
    """
    dense = weight.dense() if isinstance(weight, Weight) else weight
    if fmt in DTYPES:
        kept = dense.to(device, DTYPES[fmt])
        return PlainLinear(kept, None if bias is None else bias.to(device, DTYPES[fmt]))
    raise FormatError(f"No kernel multiplies by {fmt} weights here yet. Choose one of {', '.join(DTYPES)}.")
