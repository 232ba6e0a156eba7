"""fp8 weights: what rounding does, both ways of widening, products of fp8 by fp8, and an engine on them."""

import pytest
import torch
from torch import Tensor

from core.analytic.params import weight_plan
from core.catalog.formats import STORAGE_FORMATS
from core.engine.engine import Engine
from core.engine.files.checkpoint import Checkpoint
from core.engine.files.text import ByteText
from core.engine.files.weight import Weight
from core.engine.float8_kernels import Float8Linear, MovedFloat8Linear, ScaledFloat8Linear
from core.engine.linear import make_linear
from core.engine.quality.layer_error import rounded
from core.engine.quantise import FLOAT8_MAX, FloatRows8, float_rows8
from core.engine.sampling import Sampling
from core.errors import FormatError
from tests.engine.small import SmallWeights, small_spec

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
needs_fp8 = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9),
    reason="This machine has no GPU that multiplies fp8.",
)


def matrix(outputs: int, inputs: int, seed: int = 0) -> Tensor:
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed)) * 0.1


def every_number() -> Tensor:
    """All finite numbers of e4m3, 16 x 16; the two codes of NaN are zero."""
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    return codes.nan_to_num(0).to(torch.float8_e4m3fn).view(16, 16)


def test_a_weight_is_off_by_a_sixteenth_of_itself_at_most() -> None:
    weight = matrix(20, 64)
    kept = float_rows8(weight, torch.float32)
    scale = kept.scale.unsqueeze(1)
    bound = torch.maximum(weight.abs() / 16, scale * 2**-10)
    assert ((kept.dense() - weight).abs() <= bound * 1.001).all()
    assert kept.bytes.dtype == torch.float8_e4m3fn
    assert (kept.bytes.float().abs().amax(dim=1) == FLOAT8_MAX).all(), "the largest of a row uses the range"


def test_a_scale_that_was_rounded_down_does_not_overflow() -> None:
    weight = matrix(64, 32) + torch.linspace(1, 7, 64).unsqueeze(1)
    kept = float_rows8(weight, torch.bfloat16)
    assert kept.dense().isfinite().all()
    assert ((kept.dense() - weight).abs() <= weight.abs() / 10).all()


def test_both_ways_of_widening_are_exact_for_every_number() -> None:
    numbers = every_number()
    rows = FloatRows8(numbers, torch.ones(16, dtype=torch.bfloat16))
    for build in (Float8Linear, MovedFloat8Linear):
        widened = build(rows, None).widened(numbers)
        assert torch.equal(widened.float(), numbers.float())
    assert numbers.float().abs().max() == FLOAT8_MAX
    assert (numbers.float().abs() == 2**-9).any(), "the smallest subnormal number is among them"


@pytest.mark.parametrize("shape", [(24, 40), (7, 5), (64, 128)])
@pytest.mark.parametrize("count", [1, 9])
def test_the_product_is_that_of_the_stored_weights_whatever_the_shape(
    shape: tuple[int, int], count: int
) -> None:
    weight, rows = matrix(*shape), matrix(count, shape[1], seed=1).bfloat16()
    expected = rows.float() @ float_rows8(weight, torch.bfloat16).dense().T
    kernel = make_linear(weight, "fp8-weight-only", CPU)
    assert "storage only" in kernel.name
    assert (kernel(rows).float() - expected).abs().max() <= 0.01 * expected.abs().max()


@pytest.mark.parametrize("count", [1, 5, 40])
def test_fp8_by_fp8_is_the_product_of_what_both_are_rounded_to(count: int) -> None:
    """A CPU has this product too, for checks like this one; it is too slow to be offered."""
    weight, rows = matrix(48, 64), matrix(count, 64, seed=1).bfloat16()
    kept = float_rows8(weight, torch.float32)
    expected = float_rows8(rows.float(), torch.float32).dense() @ kept.dense().T
    found = ScaledFloat8Linear(kept, None)(rows)
    assert found.dtype == torch.bfloat16
    assert (found.float() - expected).abs().max() <= 0.01 * expected.abs().max()
    assert torch.equal(ScaledFloat8Linear(kept, None)(torch.zeros_like(rows)), torch.zeros_like(found))


def test_fp8_products_are_refused_where_nothing_has_them() -> None:
    with pytest.raises(
        FormatError, match=r"fp8-dynamic weights need a GPU .* from compute capability 8\.9 on"
    ):
        make_linear(matrix(64, 64), "fp8-dynamic", CPU)
    with pytest.raises(FormatError, match=r"sides are multiples of 16; got 64 x 40\. Choose fp8-weight-only"):
        ScaledFloat8Linear(float_rows8(matrix(64, 40), torch.float32), None)


@needs_fp8
@torch.inference_mode()
def test_fp8_products_on_a_gpu() -> None:
    weight, rows = matrix(256, 128), matrix(3, 128, seed=1).bfloat16()
    expected = float_rows8(rows.float(), torch.float32).dense() @ float_rows8(weight, torch.float32).dense().T
    found = make_linear(weight, "fp8-dynamic", "cuda")(rows.cuda()).float().cpu()
    assert (found - expected).abs().max() <= 0.02 * expected.abs().max()


def test_both_formats_take_the_bytes_that_are_counted() -> None:
    weight = matrix(48, 64)
    assert make_linear(weight, "fp8-weight-only", CPU).num_bytes == 48 * 64 + 48 * 2
    dynamic = ScaledFloat8Linear(float_rows8(weight, torch.float32), None)
    assert dynamic.num_bytes == STORAGE_FORMATS["fp8-dynamic"].matrix_bytes(48, 64) == 48 * 64 + 48 * 4


def test_its_noise_is_measured_on_its_own_rounding() -> None:
    weight = matrix(16, 32)
    found = rounded(Weight(weight), weight, "fp8-weight-only")
    assert torch.equal(found, float_rows8(weight, torch.bfloat16).dense())


@pytest.mark.parametrize("tied", [False, True])
def test_an_engine_writes_nearly_what_bf16_writes(tied: bool) -> None:
    spec = small_spec(tie_word_embeddings=tied)
    checkpoint = Checkpoint(spec, SmallWeights(spec), ByteText(spec.vocab_size), frozenset())
    engines = {
        name: Engine(checkpoint, weights=name, kv="bf16", cache="paged", device=CPU)
        for name in ("fp8-weight-only", "bf16")
    }
    written = [engine.generate([1, 2, 3], Sampling(), max_tokens=9).token_ids for engine in engines.values()]
    assert len(written[0]) == len(written[1]) == 9
    assert "storage only" in engines["fp8-weight-only"].kernels["qkv"]
    plan = weight_plan("fp8-weight-only", spec)
    assert (plan.head.id, plan.table.id, plan.shared_table) == ("bf16", "bf16", tied)
