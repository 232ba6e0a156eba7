"""Our own products of 8- and 4-bit weights, in C++: compiled on this machine when first needed.

torch's products of bf16 rows with packed weights wait for memory between one row of the matrix and the
next. The C++ beside this file does the same sums and asks for the bytes in time. It needs a
compiler; where there is none, torch's products serve.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from core.engine.kernels import ByteLinear, SwitchedLinear
from core.engine.quantise import GROUP, MIDDLE, Groups4, Rows8
from core.storage import cache_folder, write_atomically

_LOG: Final = logging.getLogger(__name__)
_SOURCE: Final = Path(__file__).with_name("packed_products.cpp")
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
#: Rows of an int8 matrix must be a multiple of so many numbers long.
LANES: Final = 16

#: Called with addresses (input, the matrix's tensors, output) and sizes (rows, outputs, inputs).
Product = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Products:
    """The compiled functions."""

    int8: Product
    int4: Product


class NativeByteLinear(ByteLinear):
    """int8 weight-only by the C++ product."""

    few_name = "int8 product in C++"

    def __init__(self, rows: Rows8, bias: Tensor | None, products: Products) -> None:
        super().__init__(rows, bias)
        self._multiply = _bound(products.int8, self.tensors, rows.bytes.shape)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return self._multiply(rows)


class NativeNibbleLinear(SwitchedLinear):
    """int4 weight-only by the C++ product.

    Byte j of a group of 32 holds weight j in its low half and weight 16 + j in its high half.
    """

    few_name = "int4 product in C++"
    many_name = "int4 to bf16, F.linear"

    def __init__(self, groups: Groups4, bias: Tensor | None, products: Products) -> None:
        low, high = groups.nibbles.view(*groups.scale.shape, 2, GROUP // 2).unbind(2)
        super().__init__(
            ((low | high << 4).contiguous(), groups.scale.contiguous(), groups.zero.contiguous()), bias
        )
        self._multiply = _bound(products.int4, self.tensors, groups.nibbles.shape)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return self._multiply(rows)

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        packed, scale, zero = self.tensors
        nibbles = torch.cat((packed & 15, packed >> 4), dim=-1).to(rows.dtype).sub_(MIDDLE)
        weight = nibbles.mul_(scale.unsqueeze(-1)).add_(zero.unsqueeze(-1))
        return functional.linear(rows, weight.flatten(1))


def _bound(product: Product, tensors: tuple[Tensor, ...], shape: torch.Size) -> Callable[[Tensor], Tensor]:
    """The product with one matrix, whose addresses are looked up once; the caller keeps the tensors."""
    addresses, (outputs, inputs) = [tensor.data_ptr() for tensor in tensors], shape

    def multiply(rows: Tensor) -> Tensor:
        rows = rows.contiguous()
        out = torch.empty(rows.shape[0], outputs, dtype=torch.bfloat16)
        product(rows.data_ptr(), *addresses, out.data_ptr(), rows.shape[0], outputs, inputs)
        return out

    return multiply


def takes(rows: Rows8) -> bool:
    """Whether the int8 product can multiply by this matrix."""
    plain = rows.bytes.is_contiguous() and rows.scale.is_contiguous()
    fits = rows.bytes.shape[1] % LANES == 0 and rows.scale.dtype == torch.bfloat16
    return plain and fits and rows.bytes.device.type == "cpu"


@functools.cache
def products() -> Products | None:
    """The compiled functions, or None where they cannot be compiled; the log says why, once."""
    try:
        library = ctypes.CDLL(str(_compiled()))
    except (OSError, subprocess.SubprocessError) as problem:
        _LOG.warning("Packed products are torch's own here, since ours cannot be compiled (%s).", problem)
        return None
    return Products(_function(library, "int8_product", 4), _function(library, "int4_product", 5))


def _function(library: ctypes.CDLL, name: str, addresses: int) -> Product:
    function = getattr(library, name)
    function.argtypes = [ctypes.c_void_p] * addresses + [ctypes.c_long] * 3
    function.restype = None
    product: Product = function
    return product


def _compiled() -> Path:
    """The compiled library of this source for this processor, made when it is missing.

    Raises:
        OSError: there is no compiler, or nowhere to write. SubprocessError: it failed or took too long.
    """
    file = cache_folder() / "kernels" / f"packed-products-{_key()}.so"
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
