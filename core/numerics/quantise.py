"""Round a matrix to a grid of few levels: one grid for all of it, for each row, or for each group.

A grid is an even one: its levels lie ``scale`` apart. A symmetric grid has a level at 0 and as many above
as below; an asymmetric one reaches from the least value to the largest. These are the engine's own
quantisers (``core.engine.quantise``) written out on numpy arrays, bit for bit, and their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import FormatError
from core.numerics.rounding import ScaleFormat, to_format

Granularity = Literal["tensor", "row", "group"]
LEAST_BITS: Final = 2
MOST_BITS: Final = 8


@dataclass(frozen=True, slots=True)
class Scheme:
    """How numbers are rounded.

    Attributes:
        bits: of a number, 2 to 8. granularity: what shares one grid.
        group: numbers of a row that share one, where the granularity is "group".
        symmetric: the grid is centred at 0 and needs no zero of its own.
        kept_in: the format of scales and zeros.
    """

    bits: int = 8
    granularity: Granularity = "row"
    group: int = 32
    symmetric: bool = True
    kept_in: ScaleFormat = "fp32"

    @property
    def middle(self) -> int:
        """The level that stands for the zero of an asymmetric grid, counted from the lowest: half of all."""
        return int(2 ** (self.bits - 1))

    @property
    def top(self) -> int:
        """The highest level: of ``2**(bits-1) - 1`` on each side of 0, or of all from 0 on.

        >>> Scheme(bits=8).top, Scheme(bits=4, symmetric=False).top
        (127, 15)
        """
        return self.middle - 1 if self.symmetric else 2 * self.middle - 1

    def width(self, columns: int) -> int:
        """Numbers that share a grid within a row of ``columns``; the whole row unless there are groups."""
        return self.group if self.granularity == "group" else columns

    def bits_per_number(self, rows: int, columns: int) -> float:
        """Bits of a number with its share of scale and zero.

        >>> Scheme(bits=4, granularity="group", group=32, symmetric=False, kept_in="bf16").bits_per_number(8, 64)
        5.0
        """  # noqa: E501 (an example is one line)
        shared = {"tensor": rows * columns, "row": columns, "group": self.group}[self.granularity]
        each = (32 if self.kept_in == "fp32" else 16) * (1 if self.symmetric else 2)
        return self.bits + each / shared


@dataclass(frozen=True, slots=True, eq=False)
class Quantised:
    """A rounded matrix.

    Attributes:
        scheme: how it was rounded.
        levels: [rows, columns] whole numbers: from -top to top where symmetric, else from 0 to top.
        scale: [rows or 1, groups], fp32. zero: the same, the value of the middle level; 0 where symmetric.
    """

    scheme: Scheme
    levels: NDArray[np.int16]
    scale: NDArray[np.float32]
    zero: NDArray[np.float32]

    def dense(self) -> NDArray[np.float32]:
        """The numbers that are stored: ``level * scale``, or ``(level - middle) * scale + zero``."""
        grouped = self.levels.astype(np.float32).reshape(*_grouped(self.levels.shape, self.scheme))
        scale, zero = self.scale[..., None], self.zero[..., None]
        if not self.scheme.symmetric:
            grouped = grouped - np.float32(self.scheme.middle)
        dense = grouped * scale if self.scheme.symmetric else grouped * scale + zero
        return dense.reshape(self.levels.shape)

    def grid(self, row: int = 0, group: int = 0) -> NDArray[np.float32]:
        """Every value that the numbers of one group can have, in order."""
        scheme = self.scheme
        levels = np.arange(-scheme.top if scheme.symmetric else 0, scheme.top + 1, dtype=np.float32)
        scale, zero = (part[row, group] for part in (self.scale, self.zero))
        values: NDArray[np.float32] = (levels - np.float32(0 if scheme.symmetric else scheme.middle)) * scale
        return values if scheme.symmetric else values + zero

    @property
    def zero_point(self) -> NDArray[np.int64]:
        """The level nearest to 0, by group; outside the levels where 0 is outside the grid."""
        if self.scheme.symmetric:
            return np.zeros(self.scale.shape, dtype=np.int64)
        nearest: NDArray[np.int64] = np.rint(-self.zero / self.scale).astype(np.int64) + self.scheme.middle
        return nearest


def quantise(values: NDArray[np.float32], scheme: Scheme) -> Quantised:
    """Round ``values`` [rows, columns] to the nearest levels.

    Symmetric: ``scale = max |x| / top``. Asymmetric: ``scale = (max - min) / top`` and
    ``zero = min + middle * scale``. Scale and zero are rounded to their own format first, and the numbers to
    that grid after, so that each is at the nearest point of the grid that is really used: at most half a
    scale off, but for what the rounded scale cuts off at the ends. A group of equal numbers has scale 1.

    Raises:
        FormatError: the bits, the group or the values are not possible.

    >>> quantise(np.float32([[-1.0, 0.5, 0.26, 1.27]]), Scheme()).levels.tolist()
    [[-100, 50, 26, 127]]
    """
    _check(values, scheme)
    grouped = values.astype(np.float32).reshape(*_grouped(values.shape, scheme))
    axes = (0, 1, 2) if scheme.granularity == "tensor" else (2,)
    top = np.float32(scheme.top)
    if scheme.symmetric:
        scale = _scale(np.abs(grouped).max(axis=axes, keepdims=True) / top, scheme)
        zero = np.zeros_like(scale)
        levels = np.clip(np.rint(grouped / scale), -top, top)
    else:
        low, high = (part(axis=axes, keepdims=True) for part in (grouped.min, grouped.max))
        scale = _scale((high - low) / top, scheme)
        zero = to_format(low + np.float32(scheme.middle) * scale, scheme.kept_in)
        levels = np.clip(np.rint((grouped - zero) / scale) + np.float32(scheme.middle), 0, top)
    rows, groups = grouped.shape[:2]
    shape = (rows, groups)
    scale, zero = (np.broadcast_to(part[..., 0], shape) for part in (scale, zero))
    return Quantised(scheme, levels.astype(np.int16).reshape(values.shape), scale, zero)


def _scale(wanted: NDArray[np.float32], scheme: Scheme) -> NDArray[np.float32]:
    scale = to_format(wanted, scheme.kept_in)
    return np.where(scale > 0, scale, np.float32(1))


def _grouped(shape: tuple[int, ...], scheme: Scheme) -> tuple[int, int, int]:
    width = scheme.width(shape[1])
    return shape[0], shape[1] // width, width


def _check(values: NDArray[np.float32], scheme: Scheme) -> None:
    if not LEAST_BITS <= scheme.bits <= MOST_BITS:
        raise FormatError(f"A grid must have {LEAST_BITS} to {MOST_BITS} bits; got {scheme.bits}.")
    if scheme.granularity not in get_args(Granularity):
        raise FormatError(
            f"A grid must be for each of {', '.join(get_args(Granularity))}; got {scheme.granularity!r}."
        )
    if values.ndim != 2 or not values.size:
        raise FormatError(f"Only a matrix with numbers in it can be rounded; got the shape {values.shape}.")
    if scheme.granularity == "group" and (scheme.group < 1 or values.shape[1] % scheme.group):
        raise FormatError(
            f"Rows must be a multiple of the group long; got rows of {values.shape[1]:,} and groups of "
            f"{scheme.group:,}. Choose another group, or one grid a row."
        )
    if not np.isfinite(values).all():
        raise FormatError("Numbers must be finite to be rounded; some are not. Look for the damage first.")
