"""Matrix products by weight format: the first seam.

``make_linear`` is the only place that knows which kernels a device has.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from core.catalog.formats import number_format
from core.engine import kernels, native
from core.engine.choice import KernelChoices
from core.engine.kernels import LinearKernel, PlainLinear, SwitchedLinear
from core.engine.nibble_kernels import CpuNibbleLinear, CudaNibbleLinear, PlainNibbleLinear
from core.engine.quantise import Groups4, Rows8, groups4, rows8
from core.engine.weight import Weight

#: Formats that are kept as they are, and the type of their numbers.
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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
        kernel = _nibbles(_moved4(groups4(weight), where), offset)
    else:
        dense = weight.dense() if isinstance(weight, Weight) else weight
        kernel = _dense(dense.to(where), fmt, offset, known)
    return settled(kernel, fmt, tuple(weight.shape), dtype, known)


def plain_kernel(weight: Tensor, bias: Tensor | None = None) -> LinearKernel:
    """The best product that leaves ``weight`` as it is, so that others may read its rows too."""
    if weight.device.type == "cpu" and weight.dtype == torch.bfloat16:
        return kernels.VectorLinear(weight, bias)
    if weight.device.type == "cpu" and weight.dtype == torch.float16:
        return kernels.HalfLinear(weight, bias)
    return PlainLinear(weight, bias)


def settled(
    kernel: LinearKernel, fmt: str, shape: tuple[int, ...], dtype: torch.dtype, choices: KernelChoices
) -> LinearKernel:
    """Find out up to how many rows the kernel's product for few rows pays, where it has one."""
    if isinstance(kernel, SwitchedLinear) and kernel.few_name != kernel.many_name:
        device = kernel.tensors[0].device
        example = torch.ones(1, shape[1], dtype=dtype, device=device)
        choices.set_switch(kernel, f"{kernel.few_name} {fmt} {shape[0]}x{shape[1]}", example)
    return kernel


def _dense(dense: Tensor, fmt: str, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    if fmt == "int8":
        return byte_kernel(rows8(dense, torch.bfloat16), bias, choices)
    if fmt == "int8-dynamic":
        return kernels.DynamicByteLinear(rows8(dense, torch.float32), bias)
    kept = dense.to(DTYPES[fmt]).contiguous()
    if kept.device.type != "cpu" or fmt == "fp16" or not torch._C._has_mkldnn:
        return plain_kernel(kept, bias)
    candidates: list[Callable[[], LinearKernel]] = [
        lambda: plain_kernel(kept, bias),
        lambda: kernels.PrepackedLinear(kept, bias),
    ]
    example = torch.ones(1, kept.shape[1], dtype=kept.dtype)
    return choices.fastest(candidates, f"plain or packed {fmt} {kept.shape[0]}x{kept.shape[1]}", example)


def byte_kernel(rows: Rows8, bias: Tensor | None, choices: KernelChoices) -> LinearKernel:
    """int8 weight-only from rows that are quantised already, and that a table may share."""
    stock = kernels.ByteLinear(rows, bias)
    ours = native.kernels() if native.takes(rows) else None
    if ours is None:
        return stock
    candidates: list[Callable[[], LinearKernel]] = [
        lambda: stock,
        lambda: native.NativeByteLinear(rows, bias, ours),
    ]
    outputs, inputs = rows.bytes.shape
    example = torch.ones(1, inputs, dtype=torch.bfloat16)
    return choices.fastest(candidates, f"torch or C++ int8 {outputs}x{inputs}", example)


def _moved4(groups: Groups4, device: torch.device) -> Groups4:
    return Groups4(*(part.to(device) for part in (groups.nibbles, groups.scale, groups.zero)))


def _nibbles(groups: Groups4, bias: Tensor | None) -> LinearKernel:
    """The packed kernel of the device where it takes the shape; unpacking for every product elsewhere."""
    outputs, inputs = groups.nibbles.shape
    if groups.nibbles.device.type == "cuda":
        fits = (
            outputs % 8 == 0
            and inputs % 32 == 0
            and torch.cuda.get_device_capability(groups.nibbles.device) >= (8, 0)
        )
        return CudaNibbleLinear(groups, bias) if fits else PlainNibbleLinear(groups, bias)
    if outputs % 16 or inputs % 32:
        return PlainNibbleLinear(groups, bias)
    return CpuNibbleLinear(groups, bias)
