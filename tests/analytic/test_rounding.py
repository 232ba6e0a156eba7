"""The engine's own quantiser rounds no worse than the formula says, and about as badly."""

import pytest
import torch

from core.analytic.rounding import rounding
from core.engine.quantise import rows8

pytestmark = pytest.mark.torch


def test_the_engine_rounds_a_block_by_at_most_half_a_step() -> None:
    block = torch.empty(1, 32).uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
    block[0, 5] = -12.7
    block[0, 6] = 0.0499  # nearly as far from a step as a value can be
    stored = rows8(block.clone(), torch.float32)
    expected = rounding("int8", 12.7)
    assert float(stored.scale) == pytest.approx(expected.step, rel=1e-6)
    error = float((stored.dense() - block).abs().max())
    assert 0.98 * expected.largest_error < error <= expected.largest_error * (1 + 1e-6)
