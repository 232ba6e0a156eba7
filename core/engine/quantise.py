"""Round weights to 8 and 4 bits, and measure nothing else: the kernels live in ``kernels``.

All quantisers round the scale to 16 bits first and the weights to that scale after, so that what is
stored is the nearest point of the grid that is really used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import torch
from torch import Tensor

from core.engine.files.weight import Weight
from core.errors import FormatError

GROUP: Final = 32  # weights that share a scale in int8-g32, and a scale and a zero in int4
MIDDLE: Final = 8  # the nibble that stands for the group's zero
FLOAT8_MAX: Final = 448.0  # the largest number of e4m3


@final
@dataclass(frozen=True, slots=True)
class Rows8:
    """int8 rows: ``weight = byte * scale``.

    Attributes:
        bytes: [out, in] int8, from -127 to 127. scale: [out].
    """

    bytes: Tensor
    scale: Tensor

    def dense(self) -> Tensor:
        """The weights that are stored, in fp32."""
        return self.bytes.float() * self.scale.float().unsqueeze(1)


@final
@dataclass(frozen=True, slots=True)
class FloatRows8:
    """fp8 rows: ``weight = number * scale``.

    Attributes:
        bytes: [out, in] e4m3. scale: [out].
    """

    bytes: Tensor
    scale: Tensor

    def dense(self) -> Tensor:
        """The weights that are stored, in fp32."""
        return self.bytes.float() * self.scale.float().unsqueeze(1)


@final
@dataclass(frozen=True, slots=True)
class Groups8:
    """int8 groups of 32: ``weight = byte * scale``, the blocks of q8_0.

    Attributes:
        bytes: [out, in] int8. scale: [out, in / 32] fp16.
    """

    bytes: Tensor
    scale: Tensor

    def dense(self) -> Tensor:
        """The weights that are stored, in fp32, where each product of a byte and its scale is exact."""
        grouped = self.bytes.view(*self.scale.shape, GROUP)
        return (grouped * self.scale.float().unsqueeze(-1)).flatten(1)


@final
@dataclass(frozen=True, slots=True)
class Groups4:
    """int4 groups of 32: ``weight = (nibble - 8) * scale + zero``.

    Attributes:
        nibbles: [out, in] uint8, from 0 to 15. scale, zero: [out, in / 32] bf16.
    """

    nibbles: Tensor
    scale: Tensor
    zero: Tensor

    def dense(self) -> Tensor:
        """The weights that are stored, in fp32."""
        grouped = (self.nibbles.float() - MIDDLE).view(*self.scale.shape, GROUP)
        return (grouped * self.scale.float().unsqueeze(-1) + self.zero.float().unsqueeze(-1)).flatten(1)


def rows8(weight: Tensor, scale_dtype: torch.dtype) -> Rows8:
    """Round ``weight`` [out, in] to 8 bits, symmetric, one scale a row.

    ``scale = max |row| / 127``; the error of a weight is at most half a scale, but for the
    rounding of the scale itself. A row of zeros keeps a scale of one.
    """
    scale = (weight.abs().amax(dim=1) / 127).to(scale_dtype)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)  # a NaN stays one
    rounded = (weight / scale.float().unsqueeze(1)).round_().clamp_(-127, 127)
    return Rows8(rounded.to(torch.int8), scale)


def float_rows8(weight: Tensor, scale_dtype: torch.dtype) -> FloatRows8:
    """Round ``weight`` [out, in] to fp8 (e4m3), one scale a row.

    ``scale = max |row| / 448``. Steps grow with the number: the error is at most a sixteenth of it, and for
    small ones 2^-10 scales, but for the rounding of the scale itself. A row of zeros keeps a scale of one.
    """
    scale = (weight.abs().amax(dim=1) / FLOAT8_MAX).to(scale_dtype)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)  # a NaN stays one
    scaled = (weight / scale.float().unsqueeze(1)).clamp_(-FLOAT8_MAX, FLOAT8_MAX)
    return FloatRows8(scaled.to(torch.float8_e4m3fn), scale)


def groups8(weight: Tensor | Weight) -> Groups8:
    """Round a matrix [out, in] to 8 bits, symmetric, one scale for each 32 of a row.

    ``scale = max |group| / 127``. A tensor that its file keeps as q8_0 has bytes and scales already: both
    stay, bit for bit.

    Raises:
        FormatError: the rows are not a multiple of 32 long.
    """
    _require_groups(weight, "int8-g32")
    if isinstance(weight, Weight) and weight.encoding == "q8_0":
        return Groups8(*weight.bytes())
    grouped = _grouped(weight)
    scale = (grouped.abs().amax(dim=-1) / 127).half()
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)  # a NaN stays one
    rounded = (grouped / scale.float().unsqueeze(-1)).round_().clamp_(-127, 127)
    return Groups8(rounded.to(torch.int8).flatten(1), scale)


def groups4(weight: Tensor | Weight) -> Groups4:
    """Round a matrix [out, in] to 4 bits, asymmetric, in groups of 32.

    A group's scale is its range / 15 and its zero the value of nibble 8. A tensor that its file keeps as
    q4_1 has nibbles, scales and minima already: the nibbles stay as they are.

    Raises:
        FormatError: the rows are not a multiple of 32 long.
    """
    _require_groups(weight, "int4")
    if isinstance(weight, Weight) and weight.encoding == "q4_1":
        nibbles, scale, minimum = weight.nibbles()
        return Groups4(nibbles, scale.bfloat16(), (minimum + MIDDLE * scale).bfloat16())
    grouped = _grouped(weight)
    low, high = grouped.aminmax(dim=-1)
    scale = ((high - low) / 15).bfloat16()
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)  # a NaN stays one
    zero = (low + MIDDLE * scale.float()).bfloat16()
    nibbles = (grouped - zero.float().unsqueeze(-1)) / scale.float().unsqueeze(-1)
    rounded = nibbles.round_().add_(MIDDLE).clamp_(0, 15)
    return Groups4(rounded.to(torch.uint8).flatten(1), scale, zero)


def _require_groups(weight: Tensor | Weight, fmt: str) -> None:
    if weight.shape[1] % GROUP:
        raise FormatError(
            f"{fmt} weights need rows that are a multiple of {GROUP} long; got {weight.shape[1]:,}. "
            "Choose int8 or a 16-bit format."
        )


def _grouped(weight: Tensor | Weight) -> Tensor:
    """In fp32, [out, in / 32, 32]."""
    dense = weight.dense() if isinstance(weight, Weight) else weight.float()
    return dense.reshape(dense.shape[0], -1, GROUP)
