"""Products with few rows by our own C++ kernels, a class for each weight format; see ``cpu_products.h``.

Each holds a ``matrix``, by which a whole step in C++ (``native_step``) finds the same numbers.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from core.engine import widening
from core.engine.choice import KernelChoices, Timed
from core.engine.kernels import ByteLinear, GroupedByteLinear, SwitchedLinear, VectorLinear
from core.engine.native.binding import LANES, kernels
from core.engine.quantise import GROUP, MIDDLE, Groups4, Groups8, Rows8

_HALVES, _BYTES, _ROUNDED_BYTES, _NIBBLES, _GROUPED_BYTES = range(5)
_LIFT: Final = 128
#: The packed kernel of the C++ takes four neighbouring inputs at a time.
_FOUR: Final = 4
#: Eight inputs of sixteen outputs of nibbles are 64 bytes.
_EIGHT: Final = 8
_NIBBLE_BYTES: Final = LANES * GROUP // 2


class Matrix(ctypes.Structure):
    """A packed matrix as the C++ sees it; who makes one keeps its tensors."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("numbers", "scales", "bias")),
        *((name, ctypes.c_int64) for name in ("outputs", "inputs", "format")),
    )


def _multiplied(matrix: Matrix, rows: Tensor, *, many: bool = False) -> Tensor:
    """``rows @ weight.T``, in the format of the rows.

    Args:
        matrix: what is multiplied by.
        rows: [M, in].
        many: each part of the matrix is widened to fp32 once for all rows.
    """
    found = kernels()
    if found is None:
        raise RuntimeError("a matrix was packed for kernels that are not there")
    wide = rows.float().contiguous()
    out = torch.empty(rows.shape[0], matrix.outputs)
    multiply = found.multiply_many if many else found.multiply
    multiply(ctypes.byref(matrix), wide.data_ptr(), out.data_ptr(), rows.shape[0])
    return out.to(rows.dtype)


class _WideningProduct(SwitchedLinear):
    """What kernels share whose C++ widens the matrix: in registers for few rows, to fp32 once for many.

    Attributes:
        matrix: as the C++ sees it. cpp_name: of the product for many rows.
        many_in_cpp: it is the faster one here; else the library's is taken.
    """

    matrix: Matrix
    cpp_name: str
    many_in_cpp = False

    def choose_many(self) -> None:
        """Take the C++ product for many rows too, where it is the fastest."""
        if many_rows_pay():
            self.many_in_cpp, self.many_name = True, self.cpp_name

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return _multiplied(self.matrix, rows)

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        if self.many_in_cpp:
            return _multiplied(self.matrix, rows, many=True)
        return super().many_rows(rows)


class NativeHalfLinear(_WideningProduct, VectorLinear):
    """bf16 by the C++ product."""

    few_name = "bf16 product in C++"
    cpp_name = "bf16 to fp32, product in C++"

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__(weight, bias)
        self.matrix = Matrix(weight.data_ptr(), None, None, *weight.shape, _HALVES)
        self.choose_many()


class NativeByteLinear(_WideningProduct, ByteLinear):
    """int8 weight-only by the C++ product."""

    few_name = "int8 product in C++"
    cpp_name = "int8 to fp32, product in C++"

    def __init__(self, rows: Rows8, bias: Tensor | None) -> None:
        super().__init__(rows, bias)
        addresses = rows.bytes.data_ptr(), rows.scale.data_ptr()
        self.matrix = Matrix(*addresses, None, *rows.bytes.shape, _BYTES)
        self.choose_many()


class NativeGroupedByteLinear(_WideningProduct, GroupedByteLinear):
    """int8 in groups of 32 by the C++ product."""

    few_name = "int8-g32 product in C++"
    cpp_name = "int8-g32 to fp32, product in C++"

    def __init__(self, groups: Groups8, bias: Tensor | None) -> None:
        super().__init__(groups, bias)
        addresses = groups.bytes.data_ptr(), groups.scale.data_ptr()
        self.matrix = Matrix(*addresses, None, *groups.bytes.shape, _GROUPED_BYTES)
        self.choose_many()


class NativeRoundedLinear(SwitchedLinear):
    """int8 dynamic by the C++ product, which also serves many rows.

    The processor multiplies bytes without a sign by bytes with one, so 128 is added to each weight.
    """

    few_name = "int8 x int8 product in C++"
    many_name = few_name

    def __init__(self, rows: Rows8, bias: Tensor | None) -> None:
        outputs, inputs = rows.bytes.shape
        tiles = rows.bytes.view(outputs // LANES, LANES, inputs // _FOUR, _FOUR).transpose(1, 2)
        lifted = (tiles.to(torch.int16) + _LIFT).to(torch.uint8).contiguous()
        super().__init__((lifted, rows.scale.contiguous()), bias)
        addresses = tuple(tensor.data_ptr() for tensor in self.tensors)
        self.matrix = Matrix(*addresses, None, outputs, inputs, _ROUNDED_BYTES)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return _multiplied(self.matrix, rows)


class NativeNibbleLinear(_WideningProduct):
    """int4 by the C++ product: tiles of 16 outputs and 32 inputs, with their scales and zeros behind.

    Of eight inputs and one output, nibbles 0 to 3 of four are the even inputs and 4 to 7 the odd ones, so
    that one look-up gives the processor its pairs.
    """

    few_name = "int4 product in C++"
    many_name = "int4 to bf16, F.linear"
    wide_name = "int4 to fp32, F.linear"
    cpp_name = "int4 to fp32, product in C++"

    def __init__(self, groups: Groups4, bias: Tensor | None) -> None:
        outputs, inputs = groups.nibbles.shape
        tiles, count = outputs // LANES, inputs // GROUP
        eights = groups.nibbles.view(tiles, LANES, count, GROUP // _EIGHT, _FOUR, 2)
        pairs = eights.permute(0, 2, 3, 1, 5, 4).reshape(tiles, count, _NIBBLE_BYTES, 2)
        sides = [
            part.view(tiles, LANES, count).transpose(1, 2).contiguous().view(torch.uint8)
            for part in (groups.scale, groups.zero)
        ]
        packed = torch.cat((pairs[..., 0] | pairs[..., 1] << 4, *sides), dim=-1)
        super().__init__((packed,), bias)
        self.matrix = Matrix(packed.data_ptr(), None, None, outputs, inputs, _NIBBLES)
        self.choose_many()

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return _multiplied(self.matrix, rows)

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        if self.many_in_cpp:
            return super().many_rows(rows)
        (packed,) = self.tensors
        tiles, count, _ = packed.shape
        pairs = packed[..., :_NIBBLE_BYTES]
        shape = tiles, count, GROUP // _EIGHT, LANES, 2, _FOUR
        dtype = torch.float32 if self.is_wide else rows.dtype
        nibbles = torch.stack((pairs & 15, pairs >> 4), dim=-1).view(shape).to(dtype).sub_(MIDDLE)
        sides = packed[..., _NIBBLE_BYTES:].contiguous().view(torch.bfloat16).to(dtype)
        scale, zero = sides.view(tiles, count, 2, 1, LANES, 1, 1).unbind(2)
        weight = nibbles.mul_(scale).add_(zero).permute(0, 3, 1, 2, 5, 4).reshape(tiles * LANES, -1)
        return self.dense_product(rows, weight).to(rows.dtype)


@functools.cache
def many_rows_pay() -> bool:
    """Whether our product in fp32 for many rows is faster here than the library's; it is timed once."""
    found = kernels()
    if found is None or found.is_wide:
        return False

    def ours(weight: Tensor) -> Callable[[Tensor], Tensor]:
        matrix = Matrix(weight.data_ptr(), None, None, *weight.shape, _HALVES)
        return lambda rows: _multiplied(matrix, rows, many=True)

    def candidates() -> list[Timed]:
        weight = torch.ones(widening.SIDE, widening.SIDE, dtype=torch.bfloat16)
        return [Timed(product, product) for product in (VectorLinear(weight, None).many_rows, ours(weight))]

    example = torch.ones(widening.ROWS, widening.SIDE, dtype=torch.bfloat16)
    choices = KernelChoices(torch.device("cpu"))
    chosen = choices.fastest("many rows by the library or in C++", candidates, example)
    choices.save()
    return bool(chosen)


#: Those whose matrix lies in tiles.
TiledLinear = NativeRoundedLinear | NativeNibbleLinear
#: Kernels by which a whole step can run in C++.
NativeLinear = (
    NativeHalfLinear | NativeByteLinear | NativeGroupedByteLinear | NativeNibbleLinear | NativeRoundedLinear
)


def takes(numbers: Tensor, *, tiled: bool) -> bool:
    """Whether our products can multiply by these numbers [out, in]: compiled, and of a size that fits."""
    outputs, inputs = numbers.shape
    fits = inputs % LANES == 0 and not (tiled and outputs % LANES)
    return fits and numbers.device.type == "cpu" and numbers.is_contiguous() and kernels() is not None


def is_suited() -> bool:
    """Whether our products are written for this processor's instructions: they are then the fastest."""
    found = kernels()
    return found is not None and found.is_suited
