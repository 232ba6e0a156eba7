"""The quantisers on numpy arrays are the engine's own, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.engine.quantise import groups4, rows8
from core.numerics.quantise import Scheme, quantise
from core.numerics.rounding import ScaleFormat

pytestmark = pytest.mark.torch

INT4 = Scheme(bits=4, granularity="group", group=32, symmetric=False, kept_in="bf16")


def matrix(seed: int, size: float, shift: float) -> torch.Tensor:
    values = torch.randn(5, 96, generator=torch.Generator().manual_seed(seed)) * size + shift
    values[1] = 0  # no range at all
    values[2, :32] = shift  # equal numbers
    return values


@given(
    seed=st.integers(0, 10_000), size=st.sampled_from([1e-4, 1.0, 300.0]), shift=st.sampled_from([0.0, 2.0])
)
@pytest.mark.parametrize(("kept_in", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_int8_rows(seed: int, size: float, shift: float, kept_in: ScaleFormat, dtype: torch.dtype) -> None:
    values = matrix(seed, size, shift)
    ours, engines = quantise(values.numpy(), Scheme(kept_in=kept_in)), rows8(values, dtype)
    assert np.array_equal(ours.levels, engines.bytes.numpy())
    assert np.array_equal(ours.scale[:, 0], engines.scale.float().numpy())
    assert np.array_equal(ours.dense(), engines.dense().numpy())


@given(
    seed=st.integers(0, 10_000), size=st.sampled_from([1e-4, 1.0, 300.0]), shift=st.sampled_from([0.0, 2.0])
)
def test_int4_groups(seed: int, size: float, shift: float) -> None:
    values = matrix(seed, size, shift)
    ours, engines = quantise(values.numpy(), INT4), groups4(values)
    assert np.array_equal(ours.levels, engines.nibbles.numpy())
    assert np.array_equal(ours.scale, engines.scale.float().numpy())
    assert np.array_equal(ours.zero, engines.zero.float().numpy())
    assert np.array_equal(ours.dense(), engines.dense().numpy())
