"""The verdict and its reason, on runs whose truth is known."""

from dataclasses import replace

import pytest

from core.lab.compare import compare, prediction_beside
from core.lab.pace import Pace
from core.lab.record import RunRecord
from core.lab.record_parts import LoadRecord
from tests.lab.examples import READ_BYTES_PER_S, record


def test_a_run_as_predicted_agrees() -> None:
    comparison = compare(record())
    assert comparison.verdict == "agrees"
    assert comparison.ttft.ratio == pytest.approx(1.0)
    assert comparison.tpot is not None
    assert comparison.tpot.ratio == pytest.approx(1.0, abs=0.02)
    low, high = comparison.tpot.range
    assert low < comparison.tpot.ratio < high
    assert "agree: TPOT is 1.00 x the prediction and TTFT is 1.00 x" in comparison.sentence


def test_every_step_and_every_operator_meets_its_own_prediction() -> None:
    comparison = compare(record(slowness=1.1))
    assert [row.name for row in comparison.steps[:2]] == ["step 0", "step 1"]
    assert len(comparison.steps) == 8
    rows = [*comparison.steps, *comparison.prefill, *comparison.decode]
    assert all(row.ratio == pytest.approx(1.1) for row in rows)
    assert {"qkv", "attention", "lm_head"} <= {row.name for row in comparison.decode}


def test_what_lies_between_two_steps_belongs_to_the_time_of_a_token() -> None:
    run = record()
    assert run.between_steps_s == pytest.approx(0.0, abs=1e-9)
    later = replace(run, measured=replace(run.measured, tpot_s=(run.measured.tpot_s or 0.0) + 0.001))
    assert later.between_steps_s == pytest.approx(0.001)
    before, after = compare(run), compare(later)
    assert before.tpot is not None
    assert after.tpot is not None
    assert after.tpot.measured_s == pytest.approx(before.tpot.measured_s + 0.001)
    gaps_s = [b.measured_s - a.measured_s for a, b in zip(before.steps, after.steps, strict=True)]
    assert gaps_s == pytest.approx([0.0] + 7 * [0.001])


def test_a_profile_that_was_slower_than_the_plain_pass_is_scaled_to_it() -> None:
    run = record()
    decode = {name: tuple(2 * v for v in times) for name, times in run.measured.operators_s["decode"].items()}
    slow = replace(run.measured, operators_s={"decode": decode})
    rows = compare(replace(run, measured=slow)).decode
    assert all(row.ratio == pytest.approx(1.0, abs=0.03) for row in rows)


def slow_operator(name: str, extra_s: float) -> RunRecord:
    """A run in which one operator of the decode took longer, and nothing else."""
    run = record()
    decode = dict(run.measured.operators_s["decode"])
    decode[name] = (decode[name][0] + extra_s,)
    measured = replace(
        run.measured,
        decode_repeats_s=tuple(seconds + extra_s for seconds in run.measured.decode_repeats_s),
        operators_s={**run.measured.operators_s, "decode": decode},
    )
    return replace(run, measured=measured)


def test_the_operator_that_explains_the_gap_is_named() -> None:
    comparison = compare(slow_operator("attention", 0.01))
    assert comparison.verdict == "differs"
    assert "Most of the 10.0 ms between them is in 'attention'" in comparison.sentence


def test_a_gap_that_is_spread_is_said_to_be_spread() -> None:
    run = record(slowness=1.5)
    unseen = {"prefill": {}, "decode": {"sample": run.measured.operators_s["decode"]["sample"]}}
    comparison = compare(replace(run, measured=replace(run.measured, operators_s=unseen)))
    assert comparison.verdict == "differs"
    assert "No single operator explains" in comparison.sentence


def test_a_run_without_a_profile_says_that_it_cannot_tell() -> None:
    run = record(slowness=1.5)
    comparison = compare(replace(run, measured=replace(run.measured, operators_s={})))
    assert "was not profiled by operator" in comparison.sentence


def test_memory_that_became_slower_is_no_reason_for_a_faster_run() -> None:
    load = LoadRecord(0.02, 0.0, 1.5, Pace(READ_BYTES_PER_S * 0.6, 2e-6), Pace(READ_BYTES_PER_S * 0.55, 2e-6))
    assert "Memory reads" not in compare(record(slowness=0.5, load=load)).sentence


def test_no_verdict_is_drawn_from_a_noisy_run_and_its_range_is_wider() -> None:
    quiet = compare(record(slowness=3.0))
    noisy = compare(record(slowness=3.0, noisy=("other programs used 40% of the processors",)))
    assert (quiet.verdict, noisy.verdict) == ("differs", "noisy")
    assert "No verdict, because this run is noisy: other programs used 40%" in noisy.sentence
    assert quiet.tpot is not None and noisy.tpot is not None
    assert 0 < noisy.tpot.low_s < quiet.tpot.low_s <= quiet.tpot.high_s < noisy.tpot.high_s
    assert noisy.tpot.measured_s == quiet.tpot.measured_s


def test_a_slow_prefill_alone_is_a_difference() -> None:
    run = record()
    slow = tuple(seconds * 2 for seconds in run.measured.prefill_repeats_s)
    comparison = compare(replace(run, measured=replace(run.measured, prefill_repeats_s=slow)))
    assert comparison.verdict == "differs"
    assert "TTFT is 2.00 x the prediction" in comparison.sentence


def test_predicted_and_measured_use_of_the_memory_are_over_one_bandwidth() -> None:
    slow = Pace(READ_BYTES_PER_S / 2, 2e-6)
    run = record(load=LoadRecord(0.02, 0.0, 1.5, slow, slow))
    beside, tpot = prediction_beside(run), compare(run).tpot
    assert run.prediction.mbu is not None and beside.mbu is not None and beside.decode is not None
    assert beside.mbu == pytest.approx(2 * run.prediction.mbu)
    moved = [row.weight_bytes + row.kv_read_bytes + row.kv_write_bytes for row in run.later_steps]
    predicted = beside.decode.weight_bytes + beside.decode.kv_bytes
    assert run.mbu is not None and tpot is not None
    assert run.mbu / beside.mbu == pytest.approx(sum(moved) / len(moved) / predicted / tpot.ratio)
