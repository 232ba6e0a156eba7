"""The operator table adds up, whatever shapes its sweeps have."""

import numpy as np
import pytest

from core.analytic.table import Operators, Row

ROWS = [
    Row("qkv", "linear", "bf16", 30, tokens=1, flops=10, weight_stored_bytes=8, weight_streamed_bytes=8),
    Row("attention", "attention", "bf16", 30, tokens=1, flops=4, kv_read_bytes=16, activation_bytes=1),
    Row("lm_head", "linear", "bf16", 1, tokens=1, flops=7, weight_streamed_bytes=5),
]


def test_columns_count_every_repeat() -> None:
    table = Operators.build(ROWS)
    assert len(table) == 3
    assert list(table) == ["qkv", "attention", "lm_head"]
    assert table.flops.tolist() == [300, 120, 7]
    assert table.total("flops") == 427
    assert table.total("weight_stored_bytes") == 240
    assert table.streamed_bytes[table.index("attention")] == 30 * 17


def test_a_sweep_is_one_table() -> None:
    context = np.array([1, 10, 100])
    rows = [ROWS[0], Row("attention", "attention", "bf16", 2, tokens=1, kv_read_bytes=4 * context)]
    table = Operators.build(rows)
    assert table.kv_read_bytes.shape == (2, 3)
    assert table.total("kv_read_bytes").tolist() == [8, 80, 800]
    assert table.total("flops").tolist() == [300, 300, 300]


def test_sweeps_of_two_parameters_broadcast() -> None:
    batch, context = np.array([[1], [2]]), np.array([1, 2, 3])
    table = Operators.build([Row("a", "attention", "bf16", 1, tokens=batch, kv_read_bytes=batch * context)])
    assert table.kv_read_bytes.shape == (1, 2, 3)
    assert table.tokens.shape == (1, 2, 3)


def test_intensity_is_zero_where_nothing_moves() -> None:
    table = Operators.build([Row("idle", "sample", "fp32", 1, tokens=1, flops=5), ROWS[2]])
    assert table.intensity.tolist() == [0.0, 7 / 5]


def test_an_unknown_operator_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        Operators.build(ROWS).index("router")
