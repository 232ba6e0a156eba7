"""The fit finds the law that made the samples, and stays sane where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.table import Kind
from core.lab.fit import (
    ANY_FORMAT,
    HEAD,
    UNLIMITED,
    Sample,
    affine,
    at_pace,
    fit_rates,
    merged,
    scaled,
    settled,
)
from core.lab.measured_rate import MeasuredRate
from core.lab.pace import FARTHEST, Pace

FIXED_S, BYTES_PER_S = 20e-6, 10e9
PACE = Pace(30e9, 2e-6)
FLOPS_PER_S = {1: 20e9, 16: 50e9, 256: 100e9}


def seconds(rows: int, num_bytes: float, flops: float) -> float:
    return FIXED_S + max(num_bytes / BYTES_PER_S, flops / FLOPS_PER_S[rows] if flops else 0.0)


def linear(rows: int, features: int, operator: str = "qkv") -> Sample:
    num_bytes, flops = float(features**2), 2.0 * rows * features**2
    return Sample(
        operator,
        "linear",
        "int8",
        rows,
        num_bytes,
        flops,
        seconds(rows, num_bytes, flops),
        0.02,
        PACE,
        "int8",
    )


def streaming(kind: Kind, operator: str, format: str, num_bytes: float) -> Sample:
    return Sample(operator, kind, format, 1, num_bytes, 0.0, seconds(1, num_bytes, 0.0), 0.05, PACE, "int8")


SAMPLES = [linear(rows, features) for rows in FLOPS_PER_S for features in (256, 512, 1024, 2048)]


def of(operator: str, samples: list[Sample]) -> MeasuredRate:
    rates = fit_rates(samples, {"int8": "a kernel"})
    return next(rate for rate in rates if rate.operator == operator and not rate.beside)


def test_the_law_of_the_samples_comes_back_for_the_operator_and_for_its_kind() -> None:
    for fitted in (of("", SAMPLES), of("qkv", SAMPLES)):
        assert (fitted.kind, fitted.format) == ("linear", "int8")
        assert fitted.rate.fixed_s == pytest.approx(FIXED_S)
        assert fitted.rate.bytes_per_s == pytest.approx(BYTES_PER_S)
        assert fitted.rate.rows == (1.0, 16.0, 256.0)
        assert fitted.rate.flops_per_s[1:] == pytest.approx((50e9, 100e9))
        assert fitted.spread == pytest.approx(0.02)
    assert of("", SAMPLES).kernel == "a kernel"


def test_on_one_row_compute_takes_as_long_as_memory_and_never_longer() -> None:
    assert of("qkv", SAMPLES).rate.flops_per_s[0] == pytest.approx(2 * BYTES_PER_S)


@given(noise=st.lists(st.floats(0.9, 1.1), min_size=4, max_size=4))
def test_a_tenth_of_noise_moves_a_predicted_time_by_little_more(noise: list[float]) -> None:
    samples = [
        replace(sample, seconds=sample.seconds * factor)
        for sample, factor in zip(SAMPLES[:4], noise, strict=True)
    ]
    fixed_s, bytes_per_s = affine(samples)
    between = 700.0**2
    assert fixed_s >= 0
    assert fixed_s + between / bytes_per_s == pytest.approx(seconds(1, between, 0.0), rel=0.2)


def test_the_head_has_its_own_rate_and_the_layers_fixed_cost() -> None:
    head = replace(linear(1, 4096, HEAD), seconds=FIXED_S + 4096**2 / 5e9)
    assert of(HEAD, [*SAMPLES, head]).rate.fixed_s == pytest.approx(FIXED_S)
    assert of(HEAD, [*SAMPLES, head]).rate.bytes_per_s == pytest.approx(5e9)
    assert of("", [*SAMPLES, head]).rate.bytes_per_s == pytest.approx(BYTES_PER_S), "it does not bend theirs"


def test_fixed_costs_are_scaled_and_nothing_else_changes() -> None:
    (half, *_) = scaled(fit_rates(SAMPLES, {}), 0.5)
    assert half.rate.fixed_s == pytest.approx(FIXED_S / 2)
    assert half.rate.bytes_per_s == pytest.approx(BYTES_PER_S)


def test_operators_of_one_kind_keep_rates_of_their_own_beside_a_shared_one() -> None:
    slow = [replace(s, seconds=3 * s.seconds) for s in norms("qk_norm")]
    fitted = {(rate.operator, rate.format): rate for rate in fit_rates([*norms("mlp_norm"), *slow], {})}
    assert fitted["mlp_norm", "bf16"].rate.fixed_s == pytest.approx(FIXED_S)
    assert fitted["qk_norm", "bf16"].rate.fixed_s == pytest.approx(3 * FIXED_S)
    assert FIXED_S < fitted["", ANY_FORMAT].rate.fixed_s < 3 * FIXED_S


def norms(operator: str) -> list[Sample]:
    return [streaming("norm", operator, "bf16", num_bytes) for num_bytes in (1e3, 1e5, 1e6)]


def test_samples_of_one_size_are_all_fixed_cost() -> None:
    same = [streaming("norm", "final_norm", "bf16", 1000.0)] * 3
    assert affine(same) == pytest.approx((seconds(1, 1000.0, 0.0), UNLIMITED))


def test_a_time_that_falls_with_size_is_fixed_cost_and_never_negative() -> None:
    falling = [replace(norms("mlp_norm")[i], seconds=value) for i, value in enumerate((3e-5, 2e-5, 1e-5))]
    fixed_s, bytes_per_s = affine(falling)
    assert 1e-5 <= fixed_s <= 3e-5
    assert bytes_per_s == pytest.approx(UNLIMITED)


def test_a_cost_below_nothing_is_no_fixed_cost() -> None:
    steep = [replace(norms("mlp_norm")[i], seconds=value) for i, value in enumerate((1e-9, 1e-5, 2e-4))]
    assert affine(steep)[0] == 0.0


def test_one_slow_round_of_three_changes_nothing() -> None:
    slow = [replace(sample, seconds=3 * sample.seconds) for sample in SAMPLES]
    assert merged([*SAMPLES, *slow, *SAMPLES]) == merged(SAMPLES)
    assert len(merged(SAMPLES)) == len(SAMPLES), "each size is a sample of its own"


def test_a_sample_taken_while_memory_was_slow_counts_as_it_would_have_been_at_the_usual_pace() -> None:
    slow = Pace(5e9, PACE.call_s)
    norm = replace(streaming("norm", "mlp_norm", "bf16", 2e3), pace=slow)
    assert at_pace(norm, PACE) == replace(norm, pace=PACE), "it waits for nothing that is read"
    norm = replace(norm, pace=replace(PACE, call_s=1.44 * PACE.call_s))
    assert at_pace(norm, PACE).seconds == pytest.approx(norm.seconds / 1.44), "it does for slower cores"
    row = replace(linear(1, 4096), pace=slow)
    followed = PACE.towards(slow)
    assert followed.read_bytes_per_s == PACE.read_bytes_per_s / FARTHEST
    there = at_pace(row, PACE)
    assert there.seconds == pytest.approx(followed.seconds_at(PACE, row.seconds, row.num_bytes))
    assert there.seconds < row.seconds


def test_samples_follow_the_pace_of_their_turn_in_full_and_their_own_check_by_half() -> None:
    checks = (1.0, 1.0, 1.0, 1.19)
    turn = [replace(linear(1, 4096), pace=Pace(5e9, 4 * PACE.call_s * slower)) for slower in checks]
    steady, *_, slow = settled(turn)
    assert steady.pace.call_s == pytest.approx(4 * PACE.call_s)
    assert slow.pace.call_s == pytest.approx(4 * PACE.call_s * 1.19**0.5)
    with pytest.raises(ValueError, match="empty"):
        settled([])


def test_what_only_moves_bytes_has_a_rate_for_each_number_of_rows() -> None:
    """Few rows are worked on by one program, many by another that reads half as fast."""
    few = [streaming("norm", "mlp_norm", "bf16", 1e4 * rows) for rows in (1, 2, 4)]
    many = [replace(few[0], rows=rows, num_bytes=1e4 * rows) for rows in (16, 64)]
    fast, slow = (
        replace(sample, seconds=FIXED_S + sample.num_bytes / (BYTES_PER_S / part))
        for sample, part in zip(many, (1, 2), strict=True)
    )
    rate = of("mlp_norm", [*few, fast, slow]).rate
    assert rate.rows == (1.0, 16.0, 64.0)
    assert rate.rows_bytes_per_s == pytest.approx((BYTES_PER_S, BYTES_PER_S, BYTES_PER_S / 2))
    assert rate.bytes_at(np.array([1.0, 64.0, 1000.0])) == pytest.approx(
        (BYTES_PER_S, BYTES_PER_S / 2, BYTES_PER_S / 2)
    )


def test_a_small_operator_has_a_rate_beside_each_format_of_weights() -> None:
    norms = [streaming("norm", "mlp_norm", "bf16", size) for size in (1e3, 2e3, 4e3)]
    slow = [replace(norm, seconds=2 * norm.seconds, beside="bf16") for norm in norms]
    rates = {row.beside: row.rate for row in fit_rates([*norms, *slow], {}) if row.operator}
    assert set(rates) == {"", "int8", "bf16"}
    assert rates["bf16"].fixed_s == pytest.approx(2 * rates["int8"].fixed_s)
    assert rates[""] == rates["int8"], "the lower of two serves other weights"
