"""One class for each way of multiplying by a packed matrix.

Most formats have two ways: a kernel that unpacks as it multiplies, which is best for few rows because
it reads the fewest bytes, and a library product after unpacking, which is best for many rows
because it unpacks once. ``switch_rows`` is where one hands over to the other; it is measured.
"""

from __future__ import annotations

from typing import Final, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from core.engine import widening
from core.engine.quantise import Groups8, Rows8

#: More rows than a batch can have: the kernel for few rows serves all.
ALWAYS: Final = 2**31
#: Weights that torch's int8 kernel takes at a time.
_LANES: Final = 16


class LinearKernel(Protocol):
    """A packed matrix and the way to multiply by it."""

    @property
    def name(self) -> str:
        """The kernel in words."""

    @property
    def num_bytes(self) -> int:
        """Bytes that one product reads of it, counted on the real tensors."""

    def __call__(self, rows: Tensor) -> Tensor:
        """``rows @ weight.T + bias``; [M, in] -> [M, out]."""


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
        return self.weight.nbytes + _bias_bytes(self.bias)


class PrepackedLinear:
    """The matrix in oneDNN's own blocked layout, packed once instead of at every product."""

    name = "oneDNN, prepacked"

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, 1)
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        """See ``LinearKernel``."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._packed, self._bias, "none", [], "")
        return product

    @property
    def num_bytes(self) -> int:
        """See ``LinearKernel``; padding of the layout included."""
        return int(torch.ops.mkldnn._nbytes(self._packed)) + _bias_bytes(self._bias)


class SwitchedLinear:
    """A matrix with one product for few rows and another for many.

    The one for many has another name, and runs in fp32, on processors without a fast product of 16 bits.
    """

    few_name: str
    many_name: str
    wide_name = ""

    def __init__(self, tensors: tuple[Tensor, ...], bias: Tensor | None) -> None:
        self.tensors = tensors
        self.bias = bias
        self.switch_rows = ALWAYS
        self.is_wide = bool(self.wide_name) and widening.pays(torch.bfloat16, tensors[0].device)
        if self.is_wide:
            alone = self.few_name == self.many_name
            self.many_name = self.wide_name
            self.few_name = self.many_name if alone else self.few_name

    def few_rows(self, rows: Tensor) -> Tensor:
        """The product that unpacks as it multiplies."""
        raise NotImplementedError

    def many_rows(self, rows: Tensor) -> Tensor:
        """The product after unpacking."""
        raise NotImplementedError

    def __call__(self, rows: Tensor) -> Tensor:
        """See ``LinearKernel``."""
        product = self.few_rows(rows) if rows.shape[0] <= self.switch_rows else self.many_rows(rows)
        return product if self.bias is None else product.add_(self.bias)

    def dense_product(self, rows: Tensor, weight: Tensor) -> Tensor:
        """``rows @ weight.T`` by the library, in the format of the rows or in fp32, which it stays in."""
        if self.is_wide:
            return widening.wide_product(rows, weight)
        return functional.linear(rows, weight.to(rows.dtype))

    @property
    def name(self) -> str:
        """See ``LinearKernel``."""
        if self.switch_rows >= ALWAYS:
            return self.few_name
        if self.switch_rows < 1:
            return self.many_name
        return f"{self.few_name} up to {self.switch_rows} rows, then {self.many_name}"

    @property
    def num_bytes(self) -> int:
        """See ``LinearKernel``."""
        return sum(tensor.nbytes for tensor in self.tensors) + _bias_bytes(self.bias)


class VectorLinear(SwitchedLinear):
    """bf16 on a CPU: torch's own vector product reads the plain matrix faster than oneDNN does.

    oneDNN is what torch takes whenever it is switched on, and only a process-wide switch turns it off;
    so it is off for the length of the one call.
    """

    few_name = "F.linear, vector product"
    many_name = "F.linear"
    wide_name = "widened to fp32, F.linear"

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__((weight,), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        before = torch._C._get_mkldnn_enabled()
        torch._C._set_mkldnn_enabled(False)
        try:
            return functional.linear(rows, self.tensors[0])
        finally:
            torch._C._set_mkldnn_enabled(before)

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return self.dense_product(rows, self.tensors[0]).to(rows.dtype)


class HalfLinear(SwitchedLinear):
    """fp16 on a CPU: a fast vector product, but no fast matrix product, so many rows run in fp32."""

    few_name = "F.linear in fp16"
    many_name = "F.linear in fp32"

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__((weight,), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return functional.linear(rows, self.tensors[0])

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return functional.linear(rows.float(), self.tensors[0].float()).half()


class ByteLinear(SwitchedLinear):
    """int8 weight-only: bf16 rows times int8 weights.

    torch's kernel takes 16 weights at a time and reads past the end of a matrix whose rows are no
    multiple of that, so such a matrix is always unpacked.
    """

    few_name = "_weight_int8pack_mm"
    many_name = "int8 to bf16, F.linear"
    wide_name = "int8 to fp32, F.linear"

    def __init__(self, rows: Rows8, bias: Tensor | None) -> None:
        super().__init__((rows.bytes, rows.scale), bias)
        if rows.bytes.shape[1] % _LANES:
            self.few_name = self.many_name

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        if self.few_name == self.many_name:
            return self.many_rows(rows)
        return torch._weight_int8pack_mm(rows, *self.tensors)

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``; every byte is exact in bf16, so the scale can wait."""
        weight, scale = self.tensors
        return self.dense_product(rows, weight).mul_(scale).to(rows.dtype)


class GroupedByteLinear(SwitchedLinear):
    """int8 in groups of 32 where there is no kernel for it: widened for every product."""

    few_name = "int8-g32 to bf16, F.linear"
    many_name = few_name
    wide_name = "int8-g32 to fp32, F.linear"

    def __init__(self, groups: Groups8, bias: Tensor | None) -> None:
        super().__init__((groups.bytes, groups.scale), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``; a weight is rounded once, to the format of the rows."""
        return self.dense_product(rows, Groups8(*self.tensors).dense()).to(rows.dtype)

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return GroupedByteLinear.few_rows(self, rows)


class DynamicByteLinear(SwitchedLinear):
    """int8 dynamic: each row of the input is rounded to 8 bits too, with a scale of its own.

    The sum of products is exact in 32-bit integers, so a row's result does not depend on the rows
    beside it. CUDA's product wants more than 16 rows, so zeros are put below.
    """

    few_name = "_int_mm, rows rounded to int8"
    many_name = few_name

    def __init__(self, rows: Rows8, bias: Tensor | None) -> None:
        super().__init__((rows.bytes, rows.scale), bias)
        self._turned = rows.bytes.t()
        self._padding = 32 if rows.bytes.device.type == "cuda" else 0

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        largest = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-30)
        rounded = (rows * (127 / largest)).round_().to(torch.int8)
        missing = self._padding - rows.shape[0]
        if missing > 0:
            rounded = functional.pad(rounded, (0, 0, 0, missing))
        sums = torch._int_mm(rounded, self._turned)[: rows.shape[0]]
        return torch.mul(sums, self.tensors[1]).mul_(largest.mul_(1 / 127)).to(rows.dtype)


def _bias_bytes(bias: Tensor | None) -> int:
    return 0 if bias is None else bias.nbytes
