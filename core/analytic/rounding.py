"""What rounding to a block format does to one weight: the step of the grid, and the largest error.

Formats whose blocks share one scale and have no zero keep whole steps of it, as many on either side of
nought: at ``bits`` bits the largest magnitude of a block is step ``2**(bits - 1) - 1``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.catalog.formats import number_format
from core.errors import FormatError

#: Formats of equal steps around nought; of the others each has a grid of its own.
SYMMETRIC: Final = ("int8", "int8-g32", "int8-dynamic", "w8a8-int8", "q8_0")


@dataclass(frozen=True, slots=True)
class Rounding:
    """The grid of one block.

    Attributes:
        step: distance of neighbouring values. largest_error: half of it.
    """

    step: float
    largest_error: float


def rounding(format_id: str, largest: float) -> Rounding:
    """How coarse a block is whose largest magnitude is ``largest``: ``largest / (2**(bits - 1) - 1)``.

    Ignored: the rounding of the scale itself where it is stored in 16 bits, which moves the largest values
    by up to another 2**-11 of themselves in fp16.

    Raises:
        FormatError: the format has no such grid, or the magnitude is negative or not finite.

    >>> rounding("q8_0", 127.0)
    Rounding(step=1.0, largest_error=0.5)
    """
    record = number_format(format_id, "weights")
    if record.id not in SYMMETRIC:
        raise FormatError(
            f"A format with equal steps around nought must be one of {', '.join(SYMMETRIC)}; "
            f"got {record.id!r}. Choose one of them."
        )
    if not 0 <= largest < math.inf:
        raise FormatError(
            f"The largest magnitude of a block must be a number from 0; got {largest}. Correct it."
        )
    step = largest / (2 ** (record.payload_bits - 1) - 1)
    return Rounding(step, step / 2)
