"""A calibration holds for its machine and for a while; anything else is explained."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.machine import Rate
from core.errors import RecordError
from core.lab import calibration_file
from core.lab.calibration import Calibration
from core.lab.calibration_file import NOT_KEPT
from core.lab.pace import Pace
from core.units import GB
from tests.lab.examples import FINGERPRINT, calibration

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))


def test_a_calibration_survives_its_file() -> None:
    assert calibration_file.save(calibration()) == ""
    stored = calibration_file.load(FINGERPRINT, NOW)
    assert (stored.calibration, stored.reason) == (calibration(), "")


def test_a_full_disk_costs_the_file_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.storage.write_atomically", full)
    assert calibration_file.save(calibration()) == NOT_KEPT
    assert calibration_file.load(FINGERPRINT, NOW).calibration is None


def test_a_folder_that_cannot_be_written_serves_this_process_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path / "file"))
    assert calibration_file.save(calibration()) == NOT_KEPT
    assert calibration_file.load(FINGERPRINT, NOW).calibration == calibration()


def test_a_write_that_was_killed_leaves_the_former_calibration() -> None:
    calibration_file.save(calibration())
    path = calibration_file.path_for(FINGERPRINT)
    (path.parent / f".{path.name}.half").write_text(path.read_text()[:100])
    assert calibration_file.load(FINGERPRINT, NOW).calibration == calibration()


def test_a_folder_in_its_place_is_said_and_not_a_crash() -> None:
    calibration_file.path_for(FINGERPRINT).mkdir(parents=True)
    stored = calibration_file.load(FINGERPRINT, NOW)
    assert stored.calibration is None
    assert stored.reason == "The stored calibration could not be read (Is a directory)."
    assert calibration_file.save(calibration()) == NOT_KEPT


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


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"schema": "x"}', "NaN", "x" * 2_000_000, "[" * 99_999, "\x00"]
)
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


def with_linear_at(bytes_per_s: float) -> Calibration:
    """A machine that reads 30 GB/s, with one product that reads so fast."""
    rate = Rate(5e-6, bytes_per_s, (1.0, 512.0), (40e9, 300e9))
    return replace(calibration(), rates=(replace(calibration().rates[0], kind="linear", rate=rate),))


@pytest.mark.parametrize(("flops_per_s", "slower"), [(60e9, 1.5), (30e9, 1.25), (3e9, 1.025)])
def test_a_product_of_few_rows_follows_memory_for_the_part_that_it_waits(
    flops_per_s: float, slower: float
) -> None:
    """Two rows of bf16 at 60 GFLOP/s read 30 GB/s of weights, all that there is; at 30 a half."""
    rate = Rate(5e-6, 30e9, (1.0, 2.0), (30e9, flops_per_s))
    row = replace(calibration().rates[0], kind="linear", format="bf16", rate=rate)
    then = replace(calibration(), rates=(row,))
    (after,) = then.at_pace(replace(then.pace, read_bytes_per_s=20 * GB)).rates
    assert after.rate.flops_per_s == pytest.approx((30e9 / 1.5, flops_per_s / slower))


@pytest.mark.parametrize(("reads", "slower"), [(30e9, 1.5), (15e9, 1.25), (3e9, 1.05)])
def test_what_waits_for_memory_follows_it_and_what_works_meanwhile_does_not(
    reads: float, slower: float
) -> None:
    """At 15 GB/s it waits half of the time; and it may not read faster than the 20 GB/s that there are."""
    then = with_linear_at(reads)
    now = then.at_pace(replace(then.pace, read_bytes_per_s=20 * GB))
    (before,), (after,) = then.rates, now.rates
    assert before.rate.bytes_per_s / after.rate.bytes_per_s == pytest.approx(slower)
    assert after.rate.bytes_per_s <= 20 * GB * (1 + 1e-9)
    assert after.rate.fixed_s == before.rate.fixed_s
    assert now.step_fixed_s == then.step_fixed_s
    assert now.read_bytes_per_s == pytest.approx(20 * GB)


def test_memory_alone_changes_nothing_that_does_not_read() -> None:
    then = calibration()
    assert then.at_pace(then.pace) == then
    now = then.at_pace(replace(then.pace, read_bytes_per_s=20 * GB))
    for before, after in zip(then.rates, now.rates, strict=True):
        if before.kind not in {"linear", "attention"}:
            assert after.rate.bytes_per_s == pytest.approx(before.rate.bytes_per_s)
            assert after.rate.fixed_s == before.rate.fixed_s


def test_slower_cores_slow_everything_but_what_waits_for_memory() -> None:
    then = calibration()
    now = then.at_pace(replace(then.pace, call_s=1.4 * then.pace.call_s))
    for before, after in zip(then.rates, now.rates, strict=True):
        slower = before.rate.bytes_per_s / after.rate.bytes_per_s
        assert after.rate.fixed_s == pytest.approx(1.4 * before.rate.fixed_s)
        waits = before.kind in {"linear", "attention"}
        assert 1.0 <= slower <= 1.4 + 1e-9 if waits else slower == pytest.approx(1.4)
        for then_flops, now_flops in zip(before.rate.flops_per_s, after.rate.flops_per_s, strict=True):
            assert then_flops / 1.4 <= now_flops * (1 + 1e-9) <= then_flops * (1 + 1e-9)
    assert now.step_fixed_s == pytest.approx(1.4 * then.step_fixed_s)


@given(st.floats(1, 1e15), st.floats(1e-9, 1))
def test_whatever_the_checks_gave_the_machine_stays_within_twice_itself(read: float, call_s: float) -> None:
    now = calibration().at_pace(Pace(read, call_s))
    assert 15 * GB <= now.pace.read_bytes_per_s <= 60 * GB
    assert all(row.rate.bytes_per_s <= 40e9 for row in now.rates if row.kind == "linear")
    assert Calibration.from_json(now.to_json()) == now


@given(st.floats(1e-6, 1), st.floats(0, 1e9), st.floats(1e9, 1e11), st.floats(1e-7, 1e-5))
def test_a_pace_stays_within_what_is_followed_and_memory_is_the_limit(
    seconds: float, size: float, read: float, call_s: float
) -> None:
    then = Pace(20e9, 2e-6)
    now = then.towards(Pace(read, call_s))
    there = then.seconds_at(now, seconds, size)
    assert then.seconds_at(then, seconds, size) == pytest.approx(seconds)
    if size / then.read_bytes_per_s < seconds:
        assert there >= size / now.read_bytes_per_s * (1 - 1e-9)
    assert seconds / 2 - 1e-12 <= there <= 2 * seconds + 1e-12
