"""Whether a processor multiplies many rows faster in fp32 than in the 16 bits that they are kept in.

Some processors have an instruction for 16-bit products, and there half the bytes are half the work. On
others a library takes each number apart, and widening rows and weights to fp32 first is many times as fast.
Which it is is timed once, with one small product for each format.
"""

from __future__ import annotations

import functools
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from core.engine.choice import KernelChoices, Timed

#: Rows, and sides of the matrix, of the product that is timed.
ROWS: Final = 64
SIDE: Final = 512
_SMALL: Final = 16


def pays(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether many rows in ``dtype`` are multiplied faster in fp32 on this device."""
    return device.type == "cpu" and dtype in {torch.bfloat16, torch.float16} and _timed(dtype)


def wide_product(rows: Tensor, weight: Tensor) -> Tensor:
    """``rows @ weight.T`` in fp32, whatever both are kept in; the result stays in fp32."""
    return functional.linear(rows.float(), weight.float())


def _rounded_product(rows: Tensor, weight: Tensor) -> Tensor:
    return wide_product(rows, weight).to(rows.dtype)


@functools.cache
def _timed(dtype: torch.dtype) -> bool:
    def candidates() -> list[Timed]:
        weight = torch.ones(SIDE, SIDE, dtype=dtype)
        small = weight[:_SMALL].clone()
        ways = functional.linear, _rounded_product
        return [
            Timed(functools.partial(way, weight=weight), functools.partial(way, weight=small)) for way in ways
        ]

    choices = KernelChoices(torch.device("cpu"))
    key = f"many rows in {str(dtype).removeprefix('torch.')} or in fp32"
    chosen = choices.fastest(key, candidates, torch.ones(ROWS, SIDE, dtype=dtype))
    choices.save()
    return bool(chosen)
