"""The grids of core.numerics: by hand, their error bounds for any numbers, and the outlier example."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.errors import FormatError
from core.numerics.error import mean_square_error, ratio_db, sqnr_by_row_db, sqnr_db
from core.numerics.outlier import PLACE, outlier_tensor
from core.numerics.quantise import Granularity, Scheme, quantise
from core.numerics.rounding import to_bf16, to_format

Matrix = NDArray[np.float32]


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """Any small matrix: normal numbers of any size, shifted, with zeros and equal rows among them."""
    seed = draw(st.integers(0, 2**32 - 1))
    size = 10.0 ** draw(st.floats(-6, 6))
    values = np.random.default_rng(seed).standard_normal((draw(st.integers(1, 4)), 64)) * size
    values += draw(st.sampled_from([0.0, size, -3 * size]))
    if draw(st.booleans()):
        values[0] = draw(st.sampled_from([0.0, size]))
    rounded: Matrix = values.astype(np.float32)
    return rounded


def fp32(*rows: list[float]) -> Matrix:
    return np.array(rows, dtype=np.float32)


SCHEMES = st.builds(
    Scheme,
    bits=st.integers(2, 8),
    granularity=st.sampled_from(["tensor", "row", "group"]),
    group=st.sampled_from([16, 32, 64]),
    symmetric=st.booleans(),
)


def test_a_symmetric_grid_by_hand() -> None:
    found = quantise(fp32([-1.0, 0.45, 0.3, 0.14]), Scheme(bits=4))
    assert found.scale[0, 0] == np.float32(1 / 7)
    assert found.levels.tolist() == [[-7, 3, 2, 1]]
    assert found.grid().tolist() == pytest.approx([level / 7 for level in range(-7, 8)])
    assert found.zero_point.tolist() == [[0]]


def test_an_asymmetric_grid_by_hand() -> None:
    found = quantise(fp32([-0.5, 0.0, 0.5, 1.0]), Scheme(bits=4, symmetric=False))
    assert found.scale[0, 0] == np.float32(0.1)
    assert found.zero[0, 0] == pytest.approx(0.3)
    assert found.levels.tolist() == [[0, 5, 10, 15]]
    assert found.zero_point.tolist() == [[5]]
    assert found.dense()[0].tolist() == pytest.approx([-0.5, 0.0, 0.5, 1.0], abs=1e-6)


@given(values=matrices(), scheme=SCHEMES)
def test_no_number_is_further_than_half_a_step_from_where_it_was(values: Matrix, scheme: Scheme) -> None:
    found = quantise(values, scheme)
    width = scheme.width(values.shape[1])
    step = np.repeat(found.scale, width, axis=1)
    slack = 1e-5 * np.abs(values).max()
    assert (np.abs(found.dense() - values) <= step / 2 + slack).all()
    assert found.levels.max() <= scheme.top
    assert found.levels.min() >= (-scheme.top if scheme.symmetric else 0)


@given(values=matrices(), scheme=SCHEMES)
def test_what_lies_on_the_grid_is_found_on_it_again(values: Matrix, scheme: Scheme) -> None:
    once = quantise(values, scheme).dense()
    twice = quantise(once, scheme).dense()
    assert np.allclose(once, twice, atol=2e-5 * float(np.abs(values).max()) + 1e-30)


@given(values=matrices(), bits=st.integers(2, 8), symmetric=st.booleans())
def test_a_grid_for_all_of_it_is_never_finer_than_one_for_each_part(
    values: Matrix, bits: int, symmetric: bool
) -> None:
    scales = [
        quantise(values, Scheme(bits, granularity, 32, symmetric))
        for granularity in ("tensor", "row", "group")
    ]
    steps = [np.repeat(q.scale, q.scheme.width(64), axis=1) for q in scales]
    level = np.ptp(values, axis=1, keepdims=True) == 0  # equal numbers have no range, and a step of 1
    wide, each = steps[0], steps[2]
    assert ((each <= wide * (1 + 1e-6)) | level | (each == 1)).all()


def test_one_outlier_costs_a_whole_tensor_thirty_times_what_it_costs_groups() -> None:
    """Page 12: 60 sigma among 4,096 numbers at 8 bits, one grid against groups of 128."""
    values = outlier_tensor(60.0)
    errors = {
        name: mean_square_error(values, quantise(values, Scheme(8, name, 128)).dense())
        for name in ("tensor", "row", "group")
    }
    assert errors["tensor"] / errors["group"] == pytest.approx(30, rel=0.1)
    assert errors["tensor"] == pytest.approx((60 / 127) ** 2 / 12, rel=0.1)
    assert errors["tensor"] > errors["row"] > errors["group"]
    assert values[PLACE] == 60


def test_without_an_outlier_it_hardly_matters() -> None:
    values = outlier_tensor(0.0)
    tensor, group = (
        mean_square_error(values, quantise(values, Scheme(8, name, 128)).dense())
        for name in ("tensor", "group")
    )
    assert 1 < tensor / group < 3


def test_one_bit_is_six_decibels() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, (4, 4096)).astype(np.float32)
    found = [sqnr_db(values, quantise(values, Scheme(bits)).dense()) for bits in (4, 5, 6, 7, 8)]
    assert np.diff(found) == pytest.approx([6.02] * 4, abs=0.7)


def test_error_by_row_adds_up_to_the_error_of_the_tensor() -> None:
    values = outlier_tensor(60.0)
    rounded = quantise(values, Scheme(8, "tensor")).dense()
    rows = sqnr_by_row_db(values, rounded)
    signal = (values.astype(np.float64) ** 2).sum(axis=1)
    noise = signal / 10 ** (rows / 10)
    assert sqnr_db(values, rounded) == pytest.approx(ratio_db(float(signal.sum()), float(noise.sum())))
    assert rows.shape == (8,)


def test_nothing_lost_is_infinite() -> None:
    values = fp32([1.0, -127.0])
    assert sqnr_db(values, values) == math.inf
    assert ratio_db(0.0, 1.0) == -math.inf


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1.0, 1.0), (1.00390625, 1.0), (1.01171875, 1.015625), (-3.1415927, -3.140625), (65504.0, 65536.0)],
)
def test_bf16_goes_to_the_nearest_and_ties_to_even(value: float, rounded: float) -> None:
    assert float(to_bf16(np.array([value], np.float32))[0]) == rounded


def test_scales_have_a_format() -> None:
    thirds = fp32([1 / 3])
    assert to_format(thirds, "fp32")[0, 0] == thirds[0, 0]
    assert to_format(thirds, "fp16")[0, 0] == np.float32(np.float16(1 / 3))
    with pytest.raises(FormatError, match="fp32, bf16 or fp16; got 'int8'"):
        to_format(thirds, "int8")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("granularity", "bits"), [("tensor", 8 + 32 / 4096), ("row", 8 + 32 / 512), ("group", 8 + 32 / 128)]
)
def test_scales_are_counted(granularity: Granularity, bits: float) -> None:
    assert Scheme(8, granularity, 128).bits_per_number(8, 512) == bits


@pytest.mark.parametrize(
    ("values", "scheme", "sentence"),
    [
        (np.ones((1, 8)), Scheme(9), "2 to 8 bits; got 9"),
        (np.ones((1, 8)), Scheme(8, "group", 3), "rows of 8 and groups of 3"),
        (np.ones((1, 8)), Scheme(8, "column"), "got 'column'"),  # type: ignore[arg-type]
        (np.ones(8), Scheme(), "the shape \\(8,\\)"),
        (np.ones((0, 8)), Scheme(), "the shape \\(0, 8\\)"),
        (np.array([[1.0, np.nan]]), Scheme(), "must be finite"),
    ],
)
def test_what_cannot_be_rounded_is_a_sentence(values: Matrix, scheme: Scheme, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        quantise(values.astype(np.float32), scheme)
