"""Rounding of fp32 numbers to the formats in which scales are kept."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.errors import FormatError

ScaleFormat = Literal["fp32", "bf16", "fp16"]
#: bf16 keeps the upper half of an fp32 number; this is the largest part below half a step of it.
_BELOW_HALF: Final = np.uint32(0x7FFF)
_ONE: Final = np.uint32(1)
_HALF_BITS: Final = np.uint32(16)
_UPPER: Final = np.uint32(0xFFFF0000)


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest bf16 numbers, as fp32; a tie goes to the even one.

    >>> float(to_bf16(np.float32([1.01]))[0])
    1.0078125
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    odd = (bits >> _HALF_BITS) & _ONE
    return ((bits + _BELOW_HALF + odd) & _UPPER).view(np.float32)


def to_format(values: NDArray[np.float32], kept_in: ScaleFormat) -> NDArray[np.float32]:
    """Round to a format and come back to fp32.

    Raises:
        FormatError: it is no such format.
    """
    if kept_in == "fp32":
        return values.astype(np.float32)
    if kept_in == "bf16":
        return to_bf16(values)
    if kept_in == "fp16":
        return values.astype(np.float16).astype(np.float32)
    raise FormatError(f"A scale must be kept in fp32, bf16 or fp16; got {kept_in!r}. Choose one of them.")
