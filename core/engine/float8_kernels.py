"""Products with fp8 weights (e4m3: a sign, four bits of exponent, three of mantissa; one scale a row).

Few chips multiply fp8, and none multiplies it by 16-bit numbers. So weights alone in fp8 are storage: half
the bytes of bf16, widened for every product. Where rows are rounded to fp8 as well, GPUs from compute
capability 8.9 on (Ada, Hopper) multiply the two; that changes the result, so it is a format of its own.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from core.engine.kernels import SwitchedLinear
from core.engine.quantise import FLOAT8_MAX, FloatRows8
from core.errors import FormatError

#: The least compute capability of a GPU whose tensor cores take fp8.
CAPABILITY: Final = (8, 9)
_LANES: Final = 16
#: Sign and payload of a byte that was widened to 16 bits with its sign and moved up by four: bits 15, 10-4.
_KEPT: Final = -0x7810
#: The exponents of fp8 and bf16 begin at -7 and -127.
_EXPONENTS: Final = 2.0**120


class Float8Linear(SwitchedLinear):
    """fp8 weight-only: the product is that of 16 bits."""

    few_name = "fp8 to bf16, F.linear (fp8 is storage only)"
    many_name = few_name

    def __init__(self, rows: FloatRows8, bias: Tensor | None) -> None:
        super().__init__((rows.bytes, rows.scale), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``; every fp8 number is exact in bf16, so the scale can wait."""
        weight, scale = self.tensors
        return self.dense_product(rows, self.widened(weight)).mul_(scale).to(rows.dtype)

    def widened(self, weight: Tensor) -> Tensor:
        """The numbers in bf16, without their scale."""
        return weight.to(torch.bfloat16)


class MovedFloat8Linear(Float8Linear):
    """The same on a CPU, where torch widens fp8 number by number: all bits are moved at once.

    Below its sign an fp8 number is an exponent and a mantissa, as a bf16 number is, only shorter: moved to
    the same place, it is off by the difference of the exponents' beginnings, 2^120, and by nothing else.
    """

    few_name = "fp8 to bf16 by moving bits, F.linear (fp8 is storage only)"
    many_name = few_name
    wide_name = "fp8 to fp32 by moving bits, F.linear (fp8 is storage only)"

    def widened(self, weight: Tensor) -> Tensor:
        """See ``Float8Linear``."""
        bits = weight.view(torch.int8).to(torch.int16).bitwise_left_shift_(4).bitwise_and_(_KEPT)
        return bits.view(torch.bfloat16).mul_(_EXPONENTS)


class ScaledFloat8Linear(SwitchedLinear):
    """fp8 dynamic: each row of the input is rounded to fp8 too, with a scale of its own."""

    few_name = "_scaled_mm, rows rounded to fp8"
    many_name = few_name

    def __init__(self, rows: FloatRows8, bias: Tensor | None) -> None:
        """Pack.

        Raises:
            FormatError: a side of the matrix is no multiple of 16.
        """
        if any(size % _LANES for size in rows.bytes.shape):
            raise FormatError(
                f"fp8 products need matrices whose sides are multiples of {_LANES}; got "
                f"{' x '.join(map(str, rows.bytes.shape))}. Choose fp8-weight-only."
            )
        super().__init__((rows.bytes, rows.scale), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        weight, scale = self.tensors
        own = rows.abs().amax(dim=-1, keepdim=True).float().clamp_(min=1e-30).div_(FLOAT8_MAX)
        rounded = (rows / own).clamp_(-FLOAT8_MAX, FLOAT8_MAX).to(weight.dtype)
        return torch._scaled_mm(rounded, weight.t(), own, scale.unsqueeze(0), out_dtype=rows.dtype)
