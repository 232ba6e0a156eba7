"""Every kernel multiplies by the weights that are stored, in few rows and in many."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from core.catalog.formats import FORMATS
from core.engine import kernels, nibble_kernels
from core.engine.choice import KernelChoices, Timed
from core.engine.linear import make_linear
from core.engine.quantise import Groups4, float_rows8, groups4, groups8, rows8
from core.errors import FormatError

pytestmark = pytest.mark.torch

WEIGHTS = [record.id for record in FORMATS.values() if "weights" in record.uses]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
#: Largest error over largest result: rounding of activations, and of 8-bit rows where they are rounded.
TOLERANCES = {
    **{"fp32": 1e-5, "fp16": 2e-3, "bf16": 1e-2, "int8": 1e-2, "int4": 1.5e-2, "int8-dynamic": 2e-2},
    **{"fp8-weight-only": 1e-2, "int8-g32": 1e-2},
}
SHAPES = [(64, 32), (80, 96), (192, 160)]


def matrix(outputs: int, inputs: int, seed: int = 0) -> Tensor:
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed)) * 0.1


def stored(weight: Tensor, weights: str) -> Tensor:
    """The weights as the format keeps them, in fp32."""
    if weights == "int4":
        return groups4(weight).dense()
    if weights == "int8-g32":
        return groups8(weight).dense()
    if weights == "fp8-weight-only":
        return float_rows8(weight, torch.bfloat16).dense()
    if weights.startswith("int8"):
        return rows8(weight, torch.bfloat16 if weights == "int8" else torch.float32).dense()
    return weight.to(DTYPES[weights]).float()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 3, 40, 200])
def test_the_product_is_that_of_the_stored_weights(weights: str, shape: tuple[int, int], count: int) -> None:
    weight = matrix(*shape)
    bias = torch.linspace(-1, 1, shape[0])
    rows = matrix(count, shape[1], seed=1).to(DTYPES[FORMATS[weights].activations])
    expected = rows.float() @ stored(weight, weights).T + bias
    found = make_linear(weight, weights, "cpu", bias=bias)(rows)
    assert found.dtype == rows.dtype
    assert (found.float() - expected).abs().max() <= TOLERANCES[weights] * expected.abs().max()


@pytest.mark.parametrize("weights", ["int8", "int4", "fp16", "bf16"])
def test_few_and_many_rows_agree(weights: str) -> None:
    weight = matrix(128, 64)
    kept = weight.to(DTYPES.get(weights, torch.float32))
    build: dict[str, Callable[[], kernels.SwitchedLinear]] = {
        "int8": lambda: kernels.ByteLinear(rows8(weight, torch.bfloat16), None),
        "int4": lambda: nibble_kernels.CpuNibbleLinear(groups4(weight), None),
        "fp16": lambda: kernels.HalfLinear(kept, None),
        "bf16": lambda: kernels.VectorLinear(kept, None),
    }
    kernel = build[weights]()
    rows = matrix(5, 64, seed=2).to(DTYPES[FORMATS[weights].activations])
    few, many = kernel.few_rows(rows).float(), kernel.many_rows(rows).float()
    assert (few - many).abs().max() <= TOLERANCES[weights] * few.abs().max()


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_kernel_keeps_the_bytes_of_its_format(weights: str) -> None:
    kernel = make_linear(matrix(192, 128), weights, "cpu")
    assert kernel.num_bytes == FORMATS[weights].matrix_bytes(192, 128)
    biased = make_linear(matrix(192, 128), weights, "cpu", bias=torch.zeros(192))
    assert biased.num_bytes - kernel.num_bytes == 192 * (4 if FORMATS[weights].activations == "fp32" else 2)


@pytest.mark.parametrize("outputs", [64, 128, 192])
def test_the_packed_nibbles_come_back(outputs: int) -> None:
    nibbles = torch.randint(0, 16, (outputs, 64), dtype=torch.uint8)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(nibbles.int(), 1)
    block = nibble_kernels.nibble_block(packed, nibbles)
    assert block in {32, 64}
    back = nibble_kernels.unpacked(packed, block).transpose(1, 2).reshape(nibbles.shape)
    assert torch.equal(back, nibbles)


def test_a_layout_that_is_not_known_is_never_guessed() -> None:
    nibbles = torch.randint(0, 16, (64, 64), dtype=torch.uint8)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(nibbles.int(), 1)
    assert nibble_kernels.nibble_block(packed.flip(0), nibbles) is None


@pytest.mark.parametrize("outputs", [16, 48, 72, 24])
def test_int4_serves_shapes_that_the_packed_kernel_does_not(outputs: int) -> None:
    weight, rows = matrix(outputs, 64), matrix(90, 64, seed=3).bfloat16()
    expected = rows.float() @ groups4(weight).dense().T
    found = make_linear(weight, "int4", "cpu")(rows).float()
    assert (found - expected).abs().max() <= TOLERANCES["int4"] * expected.abs().max()


@pytest.mark.parametrize("weights", ["int4", "int8-g32"])
def test_rows_that_do_not_fall_into_groups_are_refused(weights: str) -> None:
    with pytest.raises(FormatError, match=rf"{weights} weights need .* 32 long; got 40\. Choose int8"):
        make_linear(matrix(64, 40), weights, "cpu")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(FormatError, match="Did you mean int8, int4 or int8-g32"):
        make_linear(matrix(64, 64), "int3", "cpu")


def test_eight_bits_are_off_by_half_a_step_at_most() -> None:
    weight = matrix(20, 64)
    quantised = rows8(weight, torch.float32)
    half_step = quantised.scale.unsqueeze(1) / 2
    assert ((quantised.dense() - weight).abs() <= half_step * 1.001).all()


def test_eight_bits_in_groups_are_off_by_half_a_step_at_most_but_for_the_rounding_of_the_scale() -> None:
    weight = matrix(20, 64)
    quantised = groups8(weight)
    step = quantised.scale.float().repeat_interleave(32, dim=1)
    # fp16 has 11 bits: the largest of a group may be off by 1/2048 of itself more.
    slack = weight.view(20, 2, 32).abs().amax(-1).repeat_interleave(32, dim=1) / 2048
    assert ((quantised.dense() - weight).abs() <= step / 2 + slack).all()
    assert quantised.bytes.view(20, 2, 32).abs().amax(-1).eq(127).all()


def test_four_bits_are_off_by_half_a_step_at_most_but_for_the_rounding_of_scale_and_zero() -> None:
    weight = matrix(20, 64)
    quantised = groups4(weight)
    step = quantised.scale.float().repeat_interleave(32, dim=1)
    # bf16 has 8 bits: scale and zero may each be off by 1/256 of the group's largest value.
    slack = weight.view(20, 2, 32).abs().amax(-1).repeat_interleave(32, dim=1) / 100
    assert ((quantised.dense() - weight).abs() <= step / 2 + slack).all()


@pytest.mark.parametrize("weights", ["int8", "int8-g32", "int4", "int8-dynamic", "fp8-weight-only"])
def test_a_matrix_of_zeros_stays_zero(weights: str) -> None:
    dtype = DTYPES[FORMATS[weights].activations]
    product = make_linear(torch.zeros(64, 64), weights, "cpu")(torch.ones(2, 64, dtype=dtype))
    assert torch.equal(product, torch.zeros(2, 64, dtype=dtype))


def test_a_row_of_zeros_gives_zeros_in_int8_dynamic() -> None:
    kernel = make_linear(matrix(64, 64), "int8-dynamic", "cpu")
    assert torch.equal(kernel(torch.zeros(1, 64)), torch.zeros(1, 64))


def test_int4_without_a_kernel_is_the_same_product() -> None:
    groups: Groups4 = groups4(matrix(64, 64))
    rows = matrix(3, 64, seed=4).bfloat16()
    expected = rows.float() @ groups.dense().T
    found = nibble_kernels.PlainNibbleLinear(groups, None)(rows).float()
    assert (found - expected).abs().max() <= TOLERANCES["int4"] * expected.abs().max()


def test_int8_groups_without_a_kernel_are_the_same_product() -> None:
    groups, rows = groups8(matrix(48, 64)), matrix(3, 64, seed=4).bfloat16()
    expected = rows.float() @ groups.dense().T
    found = kernels.GroupedByteLinear(groups, None)(rows).float()
    assert (found - expected).abs().max() <= TOLERANCES["int8-g32"] * expected.abs().max()


def two_ways(kernel: kernels.SwitchedLinear) -> Callable[[], tuple[Timed, Timed]]:
    small = kernels.ByteLinear(rows8(matrix(64, 64), torch.bfloat16), None)
    return lambda: (Timed(kernel.few_rows, small.few_rows), Timed(kernel.many_rows, small.many_rows))


def test_choices_are_remembered_and_a_damaged_file_is_made_again() -> None:
    device = torch.device("cpu")
    ways = two_ways(kernels.ByteLinear(rows8(matrix(64, 64), torch.bfloat16), None))
    example = torch.ones(1, 64, dtype=torch.bfloat16)
    first = KernelChoices(device)
    chosen = first.switch_rows("a test", ways, example)
    first.save()
    assert KernelChoices(device).switch_rows("a test", lambda: pytest.fail("it is known"), example) == chosen
    first._file.write_text("{ not JSON")
    again = KernelChoices(device)
    timed = again.switch_rows("a test", ways, example)
    again.save()
    assert KernelChoices(device)._known["a test"] == timed


def test_a_kernel_that_refuses_a_shape_is_never_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Tensor:
        raise RuntimeError("this shape is not supported")

    kernel = kernels.ByteLinear(rows8(matrix(64, 64), torch.bfloat16), None)
    monkeypatch.setattr(torch, "_weight_int8pack_mm", refuse)
    example = torch.ones(1, 64, dtype=torch.bfloat16)
    kernel.switch_rows = KernelChoices(torch.device("cpu")).switch_rows("refused", two_ways(kernel), example)
    assert kernel.switch_rows == 0
    assert kernel(example).shape == (1, 64)


def test_the_faster_candidate_is_chosen_and_runs_after_a_small_one_of_its_kind() -> None:
    calls: list[str] = []

    def product(name: str, pause_s: float = 0.0) -> Callable[[Tensor], Tensor]:
        def run(rows: Tensor) -> Tensor:
            calls.append(name)
            time.sleep(pause_s)
            return rows

        return run

    slow = Timed(product("slow", 0.02), product("small slow"))
    fast = Timed(product("fast"), product("small fast"))
    choices = KernelChoices(torch.device("cpu"))
    assert choices.fastest("slow or fast", lambda: [slow, fast], torch.ones(1, 8)) == 1
    assert calls[:4] == ["small slow", "slow", "small fast", "fast"]


@pytest.mark.parametrize("last", [0, 1, 8, 128])
def test_the_rows_at_which_one_way_hands_over_are_found_by_halves(last: int) -> None:
    counts: list[int] = []

    def few(rows: Tensor) -> Tensor:
        counts.append(rows.shape[0])
        time.sleep(0.02 if rows.shape[0] > last else 0.0)
        return rows

    def many(rows: Tensor) -> Tensor:
        time.sleep(0.005)
        return rows

    def small(rows: Tensor) -> Tensor:
        return rows

    ways = (Timed(few, small), Timed(many, small))
    choices = KernelChoices(torch.device("cpu"))
    assert choices.switch_rows(f"up to {last}", lambda: ways, torch.ones(1, 8)) == last
    assert len(set(counts)) <= 4  # of eight row counts
