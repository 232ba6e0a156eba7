"""The C++ for this processor's registers gives what the plain C++ gives, which any processor runs."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor

from core.engine.native import binding as native
from core.engine.native import library as native_library
from core.engine.native.binding import Kernels
from core.engine.native.products import NativeLinear
from tests.engine.test_native_products import FORMATS, made

pytestmark = pytest.mark.torch

#: What keeps a compiler from all longer registers.
PLAIN = ("-mno-avx512f", "-mno-avx2", "-mno-avx", "-mno-fma", "-mno-f16c")
WIDENED = [name for name in FORMATS if name != "int8-dynamic"]
needs_compiler = pytest.mark.skipif(native.kernels() is None, reason="These kernels need a C++ compiler.")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """The products alone, without what this processor has beyond SSE."""
    path = tmp_path_factory.mktemp("plain") / "plain.so"
    compiler = next((found for name in native_library._COMPILERS if (found := shutil.which(name))), "")
    flags = [flag for flag in native_library._FLAGS if flag != "-march=native"]
    sources = [str(native_library._FOLDER / name) for name in native_library._SOURCES]
    try:
        subprocess.run(
            [compiler, *flags, *PLAIN, "-shared", *sources, "-o", str(path)], check=True, capture_output=True
        )
    except subprocess.CalledProcessError:
        pytest.skip("Another kind of processor: the flags of this test are those of x86.")
    return native._bound(ctypes.CDLL(str(Path(path))))


def product(found: Kernels, kernel: NativeLinear, rows: Tensor, *, many: bool = False) -> Tensor:
    out = torch.empty(rows.shape[0], kernel.matrix.outputs)
    multiply = found.multiply_many if many else found.multiply
    multiply(ctypes.byref(kernel.matrix), rows.data_ptr(), out.data_ptr(), rows.shape[0])
    return out


@needs_compiler
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(48, 96), (32, 1536)])
@torch.inference_mode()
def test_both_builds_give_the_same_products(plain: Kernels, name: str, shape: tuple[int, int]) -> None:
    ours = native.kernels()
    assert ours is not None
    kernel, rows = made(FORMATS[name], shape).kernel, torch.randn(13, shape[1])
    theirs = product(plain, kernel, rows)
    tolerance = 2e-6 * float(theirs.abs().max()) * shape[1] ** 0.5
    assert torch.allclose(product(ours, kernel, rows), theirs, rtol=0, atol=tolerance)
    if name == "int8-dynamic":  # whole numbers until they are scaled
        assert torch.allclose(product(ours, kernel, rows), theirs, rtol=1e-6, atol=0)


@needs_compiler
@pytest.mark.parametrize("name", WIDENED)
@pytest.mark.parametrize("outputs", [16, 80])
@torch.inference_mode()
def test_many_rows_are_multiplied_by_the_stored_weights(name: str, outputs: int) -> None:
    """More inputs than are widened at a time, rows that do not fill the registers; each row as if alone."""
    ours = native.kernels()
    assert ours is not None
    packed, rows = made(FORMATS[name], (outputs, 608)), torch.randn(29, 608)
    found, exact = product(ours, packed.kernel, rows, many=True), rows.double() @ packed.stored.T
    assert (found.double() - exact).abs().max() <= 2e-6 * exact.abs().max() * 608**0.5
    for count in (1, 2, 5, 7, 12):
        assert torch.equal(product(ours, packed.kernel, rows[:count], many=True), found[:count])


@needs_compiler
@pytest.mark.parametrize("name", ["bf16", "int8", "int8-g32"])
@torch.inference_mode()
def test_outputs_that_do_not_fill_a_tile_are_multiplied_too(name: str) -> None:
    ours = native.kernels()
    assert ours is not None
    packed, rows = made(FORMATS[name], (21, 64)), torch.randn(9, 64)
    exact = rows.double() @ packed.stored.T
    for many in (False, True):
        found = product(ours, packed.kernel, rows, many=many)
        assert (found.double() - exact).abs().max() <= 2e-6 * exact.abs().max() * 8
