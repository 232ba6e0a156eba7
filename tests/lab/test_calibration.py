"""A calibration holds for its machine and for a while; anything else is explained."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RecordError
from core.lab import calibration_file
from core.lab.calibration import Calibration
from core.lab.pace import Pace
from core.units import GB
from tests.lab.examples import FINGERPRINT, calibration

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))


def test_a_calibration_survives_its_file() -> None:
    calibration_file.save(calibration())
    stored = calibration_file.load(FINGERPRINT, NOW)
    assert (stored.calibration, stored.reason) == (calibration(), "")


def test_a_full_disk_costs_the_file_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.storage.write_atomically", full)
    calibration_file.save(calibration())
    assert calibration_file.load(FINGERPRINT, NOW).calibration is None


def test_a_machine_without_one_is_said() -> None:
    stored = calibration_file.load(FINGERPRINT, NOW)
    assert (stored.calibration, stored.reason) == (None, "This machine was not calibrated yet.")


def test_an_old_one_is_ignored() -> None:
    calibration_file.save(calibration())
    stored = calibration_file.load(FINGERPRINT, NOW + timedelta(days=31))
    assert stored.calibration is None
    assert stored.reason == "The stored calibration is of 2026-11-29, too far from today."


def test_one_from_the_future_is_ignored() -> None:
    calibration_file.save(calibration())
    assert calibration_file.load(FINGERPRINT, NOW - timedelta(days=2)).calibration is None


def test_one_of_another_machine_is_ignored() -> None:
    theirs = replace(calibration(), fingerprint=replace(FINGERPRINT, torch_version="2.14.0"))
    calibration_file.save(calibration())
    text = json.dumps(theirs.to_json())
    calibration_file.path_for(FINGERPRINT).write_text(text)
    stored = calibration_file.load(FINGERPRINT, NOW)
    assert stored.calibration is None
    assert (
        stored.reason
        == "The stored calibration does not hold here: its torch version is '2.14.0' and not '2.13.0'."
    )


def test_one_of_another_engine_is_ignored_and_replaced() -> None:
    other = replace(FINGERPRINT, engine="another")
    calibration_file.save(calibration())
    stored = calibration_file.load(other, NOW)
    assert stored.calibration is None
    assert "its engine is '' and not 'another'" in stored.reason
    assert calibration_file.path_for(other) == calibration_file.path_for(FINGERPRINT)


def test_the_engine_is_known_by_its_source() -> None:
    assert len(calibration_file.fingerprint("cpu", "").engine) == 12


def test_machines_do_not_share_a_file() -> None:
    other = replace(FINGERPRINT, cpu="Another processor")
    assert calibration_file.path_for(other) != calibration_file.path_for(FINGERPRINT)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "x"}', "NaN", "x" * 2_000_000])
def test_a_corrupt_one_is_ignored_with_a_reason(content: str) -> None:
    calibration_file.save(calibration())
    calibration_file.path_for(FINGERPRINT).write_text(content)
    stored = calibration_file.load(FINGERPRINT, NOW)
    assert stored.calibration is None
    assert stored.reason.startswith("The stored calibration was not used. A calibration ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 0}, "at 'version'"),
        ({"threads": 0}, "at 'threads'"),
        ({"bandwidths": []}, "at least one working set"),
        ({"measured_at": "2026-11-29"}, "an ISO time in UTC"),
        ({"step_fixed_s": -1.0}, "at 'step_fixed_s'"),
        ({"peak_flops_per_s": {"bf16": "fast"}}, "at 'peak_flops_per_s.bf16'"),
    ],
)
def test_a_value_that_does_not_fit_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Calibration.from_json({**calibration().to_json(), **change})


def test_rates_must_have_as_many_rows_as_numbers_in_order() -> None:
    data = json.loads(json.dumps(calibration().to_json()))
    data["rates"][0]["rate"]["rows"] = [16, 1, 256]
    with pytest.raises(RecordError, match="as many increasing rows as rates"):
        Calibration.from_json(data)


def test_the_machine_has_what_was_measured() -> None:
    machine = replace(calibration(), noisy=("other programs used 40% of the processors",)).machine()
    assert (machine.id, machine.origin) == ("this-computer", "measured")
    assert machine.bandwidth_bytes_per_s == 30e9
    assert machine.rate("linear", "int4").fixed_s == 5e-6
    assert machine.notes == ("The calibration is noisy: other programs used 40% of the processors.",)


def test_what_was_measured_beside_the_same_weights_comes_first() -> None:
    every = replace(calibration().rates[0], kind="norm", format="bf16", operator="mlp_norm")
    own = replace(every, beside="int8", rate=replace(every.rate, fixed_s=1e-6))
    for rates in ((every, own), (own, every)):
        known = replace(calibration(), rates=(*calibration().rates, *rates))
        assert known.machine("int8").rate("norm", "bf16", "mlp_norm") == own.rate
        for other in ("bf16", ""):
            assert known.machine(other).rate("norm", "bf16", "mlp_norm") == every.rate
        assert Calibration.from_json(known.to_json()) == known


def test_slower_memory_makes_the_reading_part_of_a_byte_take_as_much_longer_and_nothing_else() -> None:
    then = calibration()
    now = then.at_pace(replace(then.pace, read_bytes_per_s=20 * GB))
    for before, after in zip(then.rates, now.rates, strict=True):
        if before.kind in {"linear", "attention"}:
            reading_s = min(1 / 30e9, 1 / before.rate.bytes_per_s)
            expected_s = 1 / before.rate.bytes_per_s + reading_s / 2
            assert 1 / after.rate.bytes_per_s == pytest.approx(expected_s)
            assert after.rate.fixed_s == before.rate.fixed_s
            assert after.rate.flops_per_s[1:] == before.rate.flops_per_s[1:]
        else:
            assert after.rate.bytes_per_s == pytest.approx(before.rate.bytes_per_s)
    assert now.step_fixed_s == then.step_fixed_s
    assert now.read_bytes_per_s == pytest.approx(20 * GB)
    assert then.at_pace(then.pace) == then


def test_slower_calls_make_everything_take_longer_but_reading_and_the_arithmetic_of_many_rows() -> None:
    then = calibration()
    now = then.at_pace(replace(then.pace, call_s=1.5 * then.pace.call_s))
    for before, after in zip(then.rates, now.rates, strict=True):
        assert after.rate.fixed_s == pytest.approx(1.5 * before.rate.fixed_s)
        assert after.rate.flops_per_s[1:] == before.rate.flops_per_s[1:]
        slower = before.rate.bytes_per_s / after.rate.bytes_per_s
        reading = 30e9 / before.rate.bytes_per_s if before.kind in {"linear", "attention"} else 1.5
        assert min(reading, 1.0) <= slower <= 1.5 + 1e-9
    assert now.step_fixed_s == pytest.approx(1.5 * then.step_fixed_s)


def test_a_single_row_follows_its_bytes() -> None:
    rate = replace(calibration().rates[0].rate, rows=(1.0, 16.0), flops_per_s=(40e9, 300e9))
    then = replace(calibration(), rates=(replace(calibration().rates[0], rate=rate),))
    (row,) = then.at_pace(replace(then.pace, read_bytes_per_s=40 * GB)).rates
    faster = row.rate.bytes_per_s / rate.bytes_per_s
    assert faster > 1
    assert row.rate.flops_per_s == pytest.approx((40e9 * faster, 300e9))


@given(st.floats(1, 1e15), st.floats(1e-9, 1))
def test_whatever_the_checks_gave_the_machine_stays_within_twice_itself(read: float, call_s: float) -> None:
    now = calibration().at_pace(Pace(read, call_s))
    assert 15 * GB <= now.pace.read_bytes_per_s <= 60 * GB
    assert all(row.rate.bytes_per_s <= 40e9 for row in now.rates if row.kind == "linear")
    assert Calibration.from_json(now.to_json()) == now


@given(st.floats(1e-6, 1), st.floats(0, 1e9), st.floats(1e9, 1e11), st.floats(1e-7, 1e-5))
def test_there_and_back_is_the_same_time(seconds: float, size: float, read: float, call_s: float) -> None:
    then = Pace(20e9, 2e-6)
    now = then.towards(Pace(read, call_s))
    there = then.seconds_at(now, seconds, size)
    if size / then.read_bytes_per_s < seconds:
        assert now.seconds_at(then, there, size) == pytest.approx(seconds)
    assert seconds / 2 - 1e-12 <= there <= 2 * seconds + 1e-12
