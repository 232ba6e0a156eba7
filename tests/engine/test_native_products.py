"""The C++ products are those of the stored weights, and a row does not depend on the rows beside it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from core.engine import widening
from core.engine.choice import KernelChoices
from core.engine.kernels import DynamicByteLinear
from core.engine.linear import make_linear
from core.engine.native import binding as native
from core.engine.native import products as native_products
from core.engine.native.products import NativeLinear
from core.engine.quantise import Groups8, groups4, groups8, rows8

pytestmark = pytest.mark.torch

needs_compiler = pytest.mark.skipif(native.kernels() is None, reason="These kernels need a C++ compiler.")
SHAPES = [(16, 32), (48, 96), (256, 576), (32, 1536)]
COUNTS = [1, 2, 3, 4, 7, 9, 21]


@dataclass(frozen=True)
class Packed:
    kernel: NativeLinear
    stored: Tensor


def halves(weight: Tensor, bias: Tensor | None) -> Packed:
    return Packed(native_products.NativeHalfLinear(weight.bfloat16(), bias), weight.bfloat16().double())


def in_bytes(weight: Tensor, bias: Tensor | None) -> Packed:
    rows = rows8(weight, torch.bfloat16)
    return Packed(native_products.NativeByteLinear(rows, bias), rows.dense().double())


def grouped_bytes(weight: Tensor, bias: Tensor | None) -> Packed:
    groups = groups8(weight)
    return Packed(native_products.NativeGroupedByteLinear(groups, bias), groups.dense().double())


def rounded_bytes(weight: Tensor, bias: Tensor | None) -> Packed:
    rows = rows8(weight, torch.float32)
    return Packed(native_products.NativeRoundedLinear(rows, bias), rows.dense().double())


def nibbles(weight: Tensor, bias: Tensor | None) -> Packed:
    groups = groups4(weight)
    return Packed(native_products.NativeNibbleLinear(groups, bias), groups.dense().double())


FORMATS = {
    "bf16": halves,
    "int8": in_bytes,
    "int8-g32": grouped_bytes,
    "int8-dynamic": rounded_bytes,
    "int4": nibbles,
}
Pack = Callable[[Tensor, Tensor | None], Packed]
every_format = pytest.mark.parametrize("pack", FORMATS.values(), ids=FORMATS.keys())


def made(pack: Pack, shape: tuple[int, int], bias: Tensor | None = None) -> Packed:
    torch.manual_seed(sum(shape))
    return pack(torch.randn(shape), bias)


def rounded(rows: Tensor) -> Tensor:
    """What int8 dynamic makes of its rows."""
    largest = rows.abs().amax(dim=-1, keepdim=True)
    return ((rows * (127 / largest)).round() * (largest / 127)).double()


@needs_compiler
@every_format
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", COUNTS)
@torch.inference_mode()
def test_it_is_the_product_of_the_stored_weights(pack: Pack, shape: tuple[int, int], count: int) -> None:
    packed = made(pack, shape)
    rows = torch.randn(count, shape[1]).bfloat16().float()
    seen = rounded(rows) if pack is rounded_bytes else rows.double()
    exact = seen @ packed.stored.T
    found = packed.kernel.few_rows(rows)
    assert (found.double() - exact).abs().max() <= 2e-6 * exact.abs().max() * shape[1] ** 0.5


@needs_compiler
@every_format
@torch.inference_mode()
def test_a_row_does_not_depend_on_the_rows_beside_it(pack: Pack) -> None:
    kernel, rows = made(pack, (48, 96)).kernel, torch.randn(21, 96)
    alone = [kernel.few_rows(row.unsqueeze(0)) for row in rows]
    for count in COUNTS:
        assert torch.equal(kernel.few_rows(rows[:count]), torch.cat(alone[:count]))


@needs_compiler
@every_format
@torch.inference_mode()
def test_few_rows_and_many_agree_and_a_bias_is_added(pack: Pack) -> None:
    bias = torch.randn(64)
    packed, rows = made(pack, (64, 96), bias), torch.randn(5, 96)
    few = packed.kernel.few_rows(rows)
    assert torch.equal(packed.kernel(rows), few + bias)
    if packed.kernel.many_name != packed.kernel.few_name:
        many = packed.kernel.many_rows(rows.bfloat16()).float()
        assert torch.allclose(few, many, rtol=0.02, atol=0.02 * float(few.abs().max()))


@needs_compiler
@every_format
@pytest.mark.parametrize("wild", [torch.nan, torch.inf])
@torch.inference_mode()
def test_a_number_that_is_not_finite_is_not_lost(pack: Pack, wild: float) -> None:
    kernel, rows = made(pack, (32, 64)).kernel, torch.randn(3, 64)
    rows[1, 40] = wild
    found = kernel.few_rows(rows)
    assert not found[1].isfinite().any()
    assert found[[0, 2]].isfinite().all()


@needs_compiler
@torch.inference_mode()
def test_int8_dynamic_is_exactly_that_of_torch() -> None:
    rows8s, rows = rows8(torch.randn(48, 96), torch.float32), torch.randn(7, 96)
    theirs = DynamicByteLinear(rows8s, None)(rows)
    ours = native_products.NativeRoundedLinear(rows8s, None)(rows)
    assert torch.equal(ours, theirs)


@needs_compiler
@torch.inference_mode()
def test_scales_of_every_size_are_read_right() -> None:
    """Ordinary ones, the ends of fp16, those below its ordinary range, nought, and a negative one."""
    scale = torch.tensor([[1.0, 6.1e-5, 5.96e-8, 65504.0, 0.0, -0.25, 3.1e-6, 1.0009765625]] * 16).half()
    numbers = torch.randint(-128, 128, (16, 256), dtype=torch.int8)
    groups, rows = Groups8(numbers, scale), torch.eye(8, 256)
    for index, row in enumerate(rows):  # one input of each group alone, so that nothing large hides the small
        row.zero_()[32 * index + 5] = 1
    found = native_products.NativeGroupedByteLinear(groups, None).few_rows(rows)
    assert torch.equal(found, rows @ groups.dense().T)


@needs_compiler
@torch.inference_mode()
def test_rows_may_lie_apart() -> None:
    kernel, apart = made(in_bytes, (16, 32)).kernel, torch.randn(32, 3).t()
    assert torch.equal(kernel.few_rows(apart), kernel.few_rows(apart.contiguous()))


@needs_compiler
@pytest.mark.parametrize(
    ("fmt", "bits"), [("int4", 5), ("int8", 8), ("int8-g32", 8.5), ("int8-dynamic", 8), ("bf16", 16)]
)
def test_packing_adds_no_byte(fmt: str, bits: float) -> None:
    kernel = make_linear(torch.randn(64, 96), fmt, "cpu")
    scales = {"int8": 2 * 64, "int8-dynamic": 4 * 64}.get(fmt, 0)
    assert kernel.num_bytes == 64 * 96 * bits // 8 + scales


@torch.inference_mode()
def test_sizes_that_do_not_fill_the_lanes_are_left_to_torch() -> None:
    assert not native_products.takes(torch.empty(4, 24, dtype=torch.int8), tiled=False)
    assert not native_products.takes(torch.empty(24, 32, dtype=torch.int8), tiled=True)
    weight, rows = torch.randn(4, 24), torch.randn(1, 24).bfloat16()
    kernel = make_linear(weight, "int8", "cpu", choices=KernelChoices(torch.device("cpu")))
    widest = "fp32" if widening.pays(torch.bfloat16, torch.device("cpu")) else "bf16"
    assert kernel.name == f"int8 to {widest}, F.linear", "torch's packed kernel reads past such rows"
    exact = rows.float() @ rows8(weight, torch.bfloat16).dense().T
    assert torch.allclose(kernel(rows).float(), exact, rtol=0.02, atol=0.05)
