"""Our own product of int8 weights, in C++: compiled on this machine when it is first needed.

torch's product of bf16 rows and int8 weights reads the bytes at half the speed of memory. The C++ beside
this file does the same sums at full speed. It needs a compiler; where there is none, torch's serves.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from core.engine.kernels import ByteLinear
from core.engine.quantise import Rows8
from core.storage import cache_folder, write_atomically

_LOG: Final = logging.getLogger(__name__)
_SOURCE: Final = Path(__file__).with_name("int8_product.cpp")
_COMPILERS: Final = ("g++", "clang++", "c++")
#: Sums may be taken in any order, so that sixteen of them grow together.
_FLAGS: Final = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fassociative-math",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-fopenmp",
    "-fPIC",
    "-shared",
)
_COMPILE_S: Final = 60.0
#: Rows of the matrix must be a multiple of so many numbers long.
LANES: Final = 16


class NativeByteLinear(ByteLinear):
    """int8 weight-only by the C++ product; see ``int8_product.cpp``."""

    few_name = "int8 product in C++"

    def __init__(self, rows: Rows8, bias: Tensor | None, product: Callable[..., None]) -> None:
        super().__init__(rows, bias)
        self._product = product
        self._shape = (rows.bytes.shape[0], rows.bytes.shape[1])
        self._addresses = (rows.bytes.data_ptr(), rows.scale.data_ptr())

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        rows = rows.contiguous()
        out = torch.empty(rows.shape[0], self._shape[0], dtype=torch.bfloat16)
        self._product(rows.data_ptr(), *self._addresses, out.data_ptr(), rows.shape[0], *self._shape)
        return out


def takes(rows: Rows8) -> bool:
    """Whether the product can multiply by this matrix, here."""
    plain = rows.bytes.device.type == "cpu" and rows.bytes.is_contiguous() and rows.scale.is_contiguous()
    fits = rows.bytes.shape[1] % LANES == 0 and rows.scale.dtype == torch.bfloat16
    return plain and fits and int8_product() is not None


@functools.cache
def int8_product() -> Callable[..., None] | None:
    """The compiled function, or None where it cannot be compiled; the log says why, once."""
    try:
        library = ctypes.CDLL(str(_compiled()))
    except (OSError, subprocess.SubprocessError) as problem:
        _LOG.warning("int8 products are torch's own here, since ours cannot be compiled (%s).", problem)
        return None
    product = library.int8_product
    product.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3
    product.restype = None
    function: Callable[..., None] = product
    return function


def _compiled() -> Path:
    """The compiled library of this source for this processor, made when it is missing.

    Raises:
        OSError: there is no compiler, or nowhere to write. SubprocessError: it failed or took too long.
    """
    file = cache_folder() / "kernels" / f"int8-product-{_key()}.so"
    if not file.exists():
        compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
        if compiler is None:
            raise FileNotFoundError(f"none of {', '.join(_COMPILERS)} is installed")
        write_atomically(file, lambda path: _compile(compiler, path))
    return file


def _compile(compiler: str, target: Path) -> None:
    command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(target)]
    # Nothing in the command comes from a user: a found compiler, our flags, our source.
    subprocess.run(command, check=True, capture_output=True, timeout=_COMPILE_S)  # noqa: S603


def _key() -> str:
    """The source, the flags, and what the processor can do: code for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = [f"flags {platform.processor()} {platform.machine()}"]
    able = next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
    text = f"{_SOURCE.read_text()}{_FLAGS}{able}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
