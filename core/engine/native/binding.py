"""Our own kernels on a processor, in C++: compiled on this machine when first needed.

torch waits for memory between one row of a matrix and the next, and for the library between one small
operator and the next. The C++ beside this file does the same sums without that. It needs a compiler; where
there is none, torch's kernels serve.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from core.engine.native.library import load

_LOG: Final = logging.getLogger(__name__)
#: Rows of a matrix, and heads, must be a multiple of so many numbers long.
LANES: Final = 16


@dataclass(frozen=True, slots=True)
class Kernels:
    """The compiled functions; each is called with addresses and sizes, see the source."""

    multiply: Callable[..., None]
    multiply_many: Callable[..., None]
    run_step: Callable[..., None]
    step_parts: Callable[[int], int]
    is_wide: bool  # the processor has one instruction for each of the products
    is_suited: bool  # that, or the products are written for its registers
    rms_norm: Callable[..., None]
    turn: Callable[..., None]
    attend: Mapping[tuple[torch.dtype, torch.dtype], Callable[..., None]]  # by formats of query and cache


def rms_norm(rows: Tensor, weight: Tensor, eps: float) -> Tensor | None:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimension; None where torch must do it."""
    found = kernels() if rows.dtype == torch.bfloat16 and rows.device.type == "cpu" else None
    if found is None:
        return None
    rows = rows.contiguous()
    out, size = torch.empty_like(rows), rows.shape[-1]
    found.rms_norm(rows.data_ptr(), weight.data_ptr(), out.data_ptr(), rows.numel() // size, size, eps)
    return out


def turn(heads: Tensor, cosine: Tensor, sine: Tensor) -> bool:
    """Rotate ``heads`` [T, heads, D] in place; False where torch must do it."""
    count, num_heads, size = heads.shape
    packed = heads.stride()[1:] == (size, 1) and cosine.is_contiguous() and sine.is_contiguous()
    found = kernels() if packed and heads.dtype == torch.bfloat16 and heads.device.type == "cpu" else None
    if found is None:
        return False
    addresses = heads.data_ptr(), cosine.data_ptr(), sine.data_ptr()
    found.turn(*addresses, count, num_heads, size, heads.stride(0))
    return True


@functools.cache
def kernels() -> Kernels | None:
    """The compiled functions, or None where they cannot be compiled; the log says why, once."""
    try:
        return load(_bound)
    except (OSError, subprocess.SubprocessError) as problem:
        _LOG.warning("The engine's kernels are torch's own here: ours cannot be compiled (%s).", problem)
        return None


def _bound(library: ctypes.CDLL) -> Kernels:
    """The functions of a library with their arguments declared.

    Raises:
        AttributeError: it lacks one of them.
    """
    library.multiply.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
    library.multiply_many.argtypes = library.multiply.argtypes
    library.run_step.argtypes = [ctypes.c_void_p] * 2
    library.step_parts.argtypes, library.step_parts.restype = [ctypes.c_long], ctypes.c_long
    library.rms_norm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2 + [ctypes.c_float]
    library.turn.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 4
    attend = {
        (torch.bfloat16, torch.bfloat16): library.attend_bf16_bf16,
        (torch.bfloat16, torch.int8): library.attend_bf16_int8,
        (torch.float32, torch.float32): library.attend_fp32_fp32,
        (torch.float32, torch.bfloat16): library.attend_fp32_bf16,
        (torch.float32, torch.int8): library.attend_fp32_int8,
    }
    for function in attend.values():
        function.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_long] * 5
    plain = library.multiply, library.multiply_many, library.run_step, library.rms_norm, library.turn
    for function in (*plain, *attend.values()):
        function.restype = None
    multiply, multiply_many, run_step, norm, rotate = plain
    suits = library.suits()
    step = run_step, library.step_parts
    return Kernels(multiply, multiply_many, *step, suits > 1, suits > 0, norm, rotate, attend)
