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


def test_slower_memory_makes_every_byte_take_as_much_longer_and_nothing_else() -> None:
    then = calibration()
    now = then.at_bandwidth(20 * GB)
    for before, after in zip(then.rates, now.rates, strict=True):
        if before.kind == "linear":
            assert 1 / after.rate.bytes_per_s == pytest.approx(1 / 20e9 + 1 / 20e9 - 1 / 30e9)
            assert after.rate.fixed_s == before.rate.fixed_s
            assert after.rate.flops_per_s == before.rate.flops_per_s
        else:
            assert after == before
    assert now.read_bytes_per_s == pytest.approx(20 * GB)
    assert then.at_bandwidth(30 * GB) == then


@given(st.floats(1, 1e15))
def test_whatever_the_check_gave_the_machine_stays_within_twice_itself(checked: float) -> None:
    now = calibration().at_bandwidth(checked)
    assert 15 * GB <= now.checked_bytes_per_s <= 60 * GB
    assert all(row.rate.bytes_per_s <= 40e9 for row in now.rates if row.kind == "linear")
    assert Calibration.from_json(now.to_json()) == now
