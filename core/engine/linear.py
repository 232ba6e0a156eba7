"""Matrix products by weight format: the first seam.

``make_linear`` is the only place that knows which kernels a device has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Final, TypeVar, cast

import torch
from torch import Tensor

from core.catalog.formats import number_format
from core.engine import float8_kernels, kernels
from core.engine.choice import KernelChoices, Timed
from core.engine.files.weight import Weight
from core.engine.kernels import LinearKernel, SwitchedLinear
from core.engine.native import products as native_products
from core.engine.nibble_kernels import CpuNibbleLinear, CudaNibbleLinear, PlainNibbleLinear
from core.engine.quantise import Groups4, Groups8, Rows8, float_rows8, groups4, groups8, rows8
from core.errors import FormatError

#: Formats that are kept as they are, and the type of their numbers.
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
#: Rows of a small kernel that runs before another of its kind is timed; int4 comes in blocks of as many.
_SMALL: Final = 64
#: Our own kernel is taken unless it takes so many times as long as the fastest.
_MARGIN: Final = 1.25
_WORTH_TIMING: Final = 2**18

Matrix = TypeVar("Matrix", Tensor, Rows8, Groups8, Groups4)
#: Numbers with their scales apart.
Scaled = TypeVar("Scaled", Rows8, Groups8, Groups4)
#: Packs a matrix, with its bias.
Build = Callable[[Matrix, Tensor | None], LinearKernel]


def make_linear(
    weight: Tensor | Weight,
    fmt: str,
    device: torch.device | str,
    *,
    bias: Tensor | None = None,
    choices: KernelChoices | None = None,
) -> LinearKernel:
    """Pack ``weight`` [out, in] in a format, and choose how to multiply by it on a device.

    Args:
        weight: the matrix.
        fmt: id of the weight format.
        device: where it will be multiplied.
        bias: [out], or None.
        choices: what was timed so far; looked up on disk unless given.

    Raises:
        FormatError: the format is unknown, or this matrix does not fit it.

    >>> kernel = make_linear(torch.eye(64), "fp32", "cpu")
    >>> kernel(torch.ones(2, 64)).sum().item()
    128.0
    """
    where = torch.device(device)
    known = KernelChoices(where) if choices is None else choices
    dtype = DTYPES[number_format(number_format(fmt, "weights").activations, "kv").id]
    offset = None if bias is None else bias.to(where, dtype)
    if fmt == "int4":
        groups = moved(groups4(weight), where)
        return _settled(_nibbles(groups, known), groups, offset, dtype, known)
    if fmt == "int8-g32":
        return grouped_linear(moved(groups8(weight), where), offset, known)
    dense = (weight.dense() if isinstance(weight, Weight) else weight).to(where)
    if fmt == "int8":
        return byte_linear(rows8(dense, dtype), offset, known)
    if fmt == "int8-dynamic":
        return _rounding(rows8(dense, dtype), offset, known)
    if fmt.startswith("fp8"):
        return _float8(fmt, dense, offset)
    return _kept(dense.to(dtype).contiguous(), offset, known)


def plain_linear(weight: Tensor, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    """The best product that leaves ``weight`` as it is, so that others may read its rows too."""
    builds = [*_half_in_cpp(weight), _plain(weight)]
    build = _fastest("bf16 in C++ or torch", builds, weight, weight.dtype, choices)
    return _settled(build, weight, bias, weight.dtype, choices)


def byte_linear(rows: Rows8, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    """int8 weight-only from rows that are quantised already, and that a table may share."""
    builds: list[Build[Rows8]] = [kernels.ByteLinear]
    if native_products.takes(rows.bytes, tiled=False):
        builds.insert(0, native_products.NativeByteLinear)
    build = _fastest("int8 in C++ or torch", builds, rows, torch.bfloat16, choices)
    return _settled(build, rows, bias, torch.bfloat16, choices)


def grouped_linear(groups: Groups8, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    """int8 in groups of 32 from blocks that are there already, and that a table may share."""
    builds: list[Build[Groups8]] = [kernels.GroupedByteLinear]
    if native_products.takes(groups.bytes, tiled=False):
        builds.insert(0, native_products.NativeGroupedByteLinear)
    build = _fastest("int8-g32 in C++ or torch", builds, groups, torch.bfloat16, choices)
    return _settled(build, groups, bias, torch.bfloat16, choices)


def _rounding(rows: Rows8, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    """int8 dynamic."""
    builds: list[Build[Rows8]] = [kernels.DynamicByteLinear]
    if native_products.takes(rows.bytes, tiled=True):
        builds.insert(0, native_products.NativeRoundedLinear)
    return _fastest("int8 x int8 in C++ or torch", builds, rows, torch.float32, choices)(rows, bias)


def _float8(fmt: str, weight: Tensor, bias: Tensor | None) -> LinearKernel:
    """fp8 as storage, which every device has, or fp8 products."""
    on_gpu = weight.device.type == "cuda"
    if fmt == "fp8-weight-only":
        build = float8_kernels.Float8Linear if on_gpu else float8_kernels.MovedFloat8Linear
        return build(float_rows8(weight, torch.bfloat16), bias)
    if not on_gpu or torch.cuda.get_device_capability(weight.device) < float8_kernels.CAPABILITY:
        raise FormatError(
            f"{fmt} weights need a GPU that multiplies fp8, from compute capability 8.9 on; this device is "
            "none. Choose fp8-weight-only, which every device can store."
        )
    return float8_kernels.ScaledFloat8Linear(float_rows8(weight, torch.float32), bias)


def _kept(weight: Tensor, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    """A matrix in a format of torch's own: as it is, or packed by oneDNN."""
    builds = [*_half_in_cpp(weight), _plain(weight)]
    if _packs(weight):
        builds.append(kernels.PrepackedLinear)
    name = f"C++, plain or packed {str(weight.dtype).removeprefix('torch.')}"
    build = _fastest(name, builds, weight, weight.dtype, choices)
    return _settled(build, weight, bias, weight.dtype, choices)


def _packs(weight: Tensor) -> bool:
    """Whether oneDNN has a layout of its own for such a matrix; for bf16 not on every processor."""
    if weight.device.type != "cpu" or not torch._C._has_mkldnn or weight.dtype == torch.float16:
        return False
    return weight.dtype != torch.bfloat16 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _half_in_cpp(weight: Tensor) -> list[Build[Tensor]]:
    """Our product with a matrix that stays as it is, where there is one."""
    fits = weight.dtype == torch.bfloat16 and native_products.takes(weight, tiled=False)
    return [native_products.NativeHalfLinear] if fits else []


def _plain(weight: Tensor) -> Build[Tensor]:
    if weight.device.type == "cpu" and weight.dtype == torch.bfloat16:
        return kernels.VectorLinear
    if weight.device.type == "cpu" and weight.dtype == torch.float16:
        return kernels.HalfLinear
    return kernels.PlainLinear


def _fastest(
    name: str, builds: Sequence[Build[Matrix]], matrix: Matrix, dtype: torch.dtype, choices: KernelChoices
) -> Build[Matrix]:
    """The way of packing whose product with a single row is fastest here.

    Ours without a question where it is written for the processor's instructions, and for matrices so small
    that only calls would be timed: a step in one call needs ours, which timing one product does not show.
    """
    ours = getattr(builds[0], "__module__", "") == native_products.__name__
    sure = ours and (native_products.is_suited() or _numbers(matrix).numel() < _WORTH_TIMING)
    if len(builds) == 1 or sure:
        return builds[0]

    def candidates() -> list[Timed]:
        small = _first_rows(matrix)
        return [Timed(build(matrix, None), build(small, None)) for build in builds]

    margin = _MARGIN if ours else 1.0
    place = choices.fastest(f"{name} {_size(matrix)}", candidates, _example(matrix, dtype), margin)
    return builds[min(place, len(builds) - 1)]


def _settled(
    build: Build[Matrix], matrix: Matrix, bias: Tensor | None, dtype: torch.dtype, choices: KernelChoices
) -> LinearKernel:
    """Pack, and find out up to how many rows the product for few rows pays, where there is one."""
    kernel = build(matrix, bias)
    if not isinstance(kernel, SwitchedLinear) or kernel.few_name == kernel.many_name:
        return kernel

    def ways() -> tuple[Timed, Timed]:
        small = cast(SwitchedLinear, build(_first_rows(matrix), None))  # of the same kind
        return Timed(kernel.few_rows, small.few_rows), Timed(kernel.many_rows, small.many_rows)

    key = f"{kernel.few_name} {_size(matrix)}"
    kernel.switch_rows = choices.switch_rows(key, ways, _example(matrix, dtype))
    return kernel


def _first_rows(matrix: Matrix) -> Matrix:
    """A small matrix of the same kind, in memory of its own."""
    if isinstance(matrix, Tensor):
        return matrix[:_SMALL].clone()
    return _changed(matrix, lambda part: part[:_SMALL].clone())


def moved(matrix: Scaled, device: torch.device) -> Scaled:
    """The same numbers and scales on a device."""
    return _changed(matrix, lambda part: part.to(device))


def _changed(matrix: Scaled, change: Callable[[Tensor], Tensor]) -> Scaled:
    """The same with each of its tensors changed."""
    return replace(matrix, **{part.name: change(getattr(matrix, part.name)) for part in fields(matrix)})


def _numbers(matrix: Tensor | Rows8 | Groups8 | Groups4) -> Tensor:
    """Its numbers without their scales, [out, in]."""
    if isinstance(matrix, Rows8 | Groups8):
        return matrix.bytes
    return matrix.nibbles if isinstance(matrix, Groups4) else matrix


def _size(matrix: Tensor | Rows8 | Groups8 | Groups4) -> str:
    outputs, inputs = _numbers(matrix).shape
    return f"{outputs}x{inputs}"


def _example(matrix: Tensor | Rows8 | Groups8 | Groups4, dtype: torch.dtype) -> Tensor:
    numbers = _numbers(matrix)
    return torch.ones(1, numbers.shape[1], dtype=dtype, device=numbers.device)


def _nibbles(groups: Groups4, choices: KernelChoices) -> Build[Groups4]:
    """The packed kernel of the device where it takes the shape; unpacking for every product elsewhere."""
    outputs, inputs = groups.nibbles.shape
    if groups.nibbles.device.type == "cuda":
        fits = (
            outputs % 8 == 0
            and inputs % 32 == 0
            and torch.cuda.get_device_capability(groups.nibbles.device) >= (8, 0)
        )
        return CudaNibbleLinear if fits else PlainNibbleLinear
    builds: list[Build[Groups4]] = [PlainNibbleLinear if outputs % 16 or inputs % 32 else CpuNibbleLinear]
    if native_products.takes(groups.nibbles, tiled=True):
        builds.insert(0, native_products.NativeNibbleLinear)
    return _fastest("int4 in C++ or torch", builds, groups, torch.bfloat16, choices)
