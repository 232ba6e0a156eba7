"""Blocks of a GGUF file, taken apart without the library that wrote them."""

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, dequantize, quantize

from core.engine.files.gguf_file import unpermute
from core.engine.files.weight import Weight, stack
from core.engine.quantise import groups4, groups8

pytestmark = pytest.mark.torch


def blocks(kind: str, rows: int = 6, columns: int = 96, seed: int = 0) -> tuple[Weight, np.ndarray]:
    """Random numbers as blocks, and what the gguf library reads back from them."""
    values = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    encoding = GGMLQuantizationType[kind.upper()]
    raw = quantize(values, encoding)
    return Weight(torch.from_numpy(raw), kind), dequantize(raw, encoding)


@pytest.mark.parametrize("kind", ["q4_1", "q8_0"])
def test_blocks_mean_what_the_library_says(kind: str) -> None:
    weight, expected = blocks(kind)
    assert weight.shape == expected.shape
    np.testing.assert_allclose(weight.dense().numpy(), expected, rtol=1e-6, atol=1e-7)


def test_four_bit_blocks_keep_their_nibbles() -> None:
    weight, expected = blocks("q4_1")
    nibbles, scale, minimum = weight.nibbles()
    groups = groups4(weight)
    assert torch.equal(groups.nibbles, nibbles)
    # Only scale and zero are rounded, to the 8 bits of bf16.
    np.testing.assert_allclose(groups.dense().numpy(), expected, atol=float(np.abs(expected).max()) / 100)
    assert torch.equal(groups.scale, scale.bfloat16())
    assert torch.equal(groups.zero, (minimum + 8 * scale).bfloat16())


def test_eight_bit_blocks_stay_bit_for_bit() -> None:
    weight, expected = blocks("q8_0")
    groups = groups8(weight)
    raw = weight.data.view(6, 3, 34)
    assert torch.equal(groups.bytes.view(torch.uint8).view(6, 3, 32), raw[..., 2:])
    assert torch.equal(groups.scale.view(torch.uint8).view(6, 3, 2), raw[..., :2])
    np.testing.assert_array_equal(groups.dense().numpy(), expected)


def test_numbers_that_were_such_blocks_become_the_same_blocks_again() -> None:
    weight, _ = blocks("q8_0")
    again, once = groups8(weight.dense()), groups8(weight)
    assert torch.equal(again.bytes, once.bytes)
    assert torch.equal(again.scale, once.scale)


def test_tensors_stack_as_blocks_or_as_numbers() -> None:
    first, expected_first = blocks("q4_1", rows=4)
    second, expected_second = blocks("q4_1", rows=2, seed=1)
    other, expected_other = blocks("q8_0", rows=2, seed=2)
    same, mixed = stack([first, second]), stack([first, other])
    assert (same.encoding, mixed.encoding) == ("q4_1", "plain")
    np.testing.assert_allclose(same.dense(), np.concatenate([expected_first, expected_second]), rtol=1e-5)
    np.testing.assert_allclose(mixed.dense(), np.concatenate([expected_first, expected_other]), rtol=1e-5)


@pytest.mark.parametrize(("heads", "dim"), [(1, 4), (3, 8), (2, 64)])
def test_rows_of_q_and_k_go_back_to_halves(heads: int, dim: int) -> None:
    halves = np.arange(heads * dim * 5).reshape(heads * dim, 5)
    pairs = np.stack(
        [halves[head * dim + i % 2 * dim // 2 + i // 2] for head in range(heads) for i in range(dim)]
    )
    np.testing.assert_array_equal(unpermute(pairs, heads), halves)
