"""Contention is detected, from each of its traces, and a quiet run is left alone."""

from dataclasses import asdict, replace

import pytest

from core.errors import RecordError
from core.lab.checked_json import Reader
from core.lab.host import HostLoad, LoadProbe, cpu_name, physical_cores, usable_cores
from core.lab.limits import Limits, memory_bytes
from core.lab.noise import noise
from core.lab.pace import Pace
from core.lab.record_parts import LoadRecord
from core.lab.timing import Spread, agrees, spread, warm_up

QUIET = Spread(1.0, 0.98, 1.03, 30)
CALIBRATED = Pace(30e9, 2e-6)


def load(
    others: float = 0.02,
    steal: float = 0.0,
    before: float = 29e9,
    after: float = 28e9,
    call_after_s: float = 2e-6,
) -> LoadRecord:
    return LoadRecord(others, steal, 2.0, Pace(before, 2.1e-6), Pace(after, call_after_s))


def test_the_pace_of_a_prediction_is_kept_and_older_records_tell_none() -> None:
    slow = Pace(10e9, 9e-6)
    for kept, pace in (
        (load(), CALIBRATED.halfway(load().before)),
        (replace(load(), followed=CALIBRATED), CALIBRATED),
        (replace(load(), followed=slow), Pace(15e9, 4e-6)),  # no farther than anything is followed
        (replace(load(), before=slow), CALIBRATED.halfway(Pace(15e9, 4e-6))),
    ):
        again = LoadRecord.from_reader(Reader(asdict(kept), "A run"))
        assert again == kept
        assert again.predicted_at(CALIBRATED) == pace


@pytest.mark.parametrize("followed", [{}, 0, "", False, {"read_bytes_per_s": 1e9}, {"call_s": 1e-6}])
def test_half_a_pace_is_none(followed: object) -> None:
    with pytest.raises(RecordError):
        LoadRecord.from_reader(Reader({**asdict(load()), "followed": followed}, "A run"))


def test_a_quiet_run_has_no_reason() -> None:
    assert noise(load(), QUIET, QUIET, CALIBRATED) == ()
    assert noise(load(), None, None, CALIBRATED) == ()


@pytest.mark.parametrize(
    ("seen", "repeats", "reason"),
    [
        (load(others=0.4), QUIET, "other programs used 40% of the processors"),
        (load(steal=0.08), QUIET, "the hypervisor gave 8% of the processors to other machines"),
        (load(after=15e9), QUIET, "memory bandwidth moved between 15.0 GB/s and 29.0 GB/s"),
        (load(before=15e9, after=16e9), QUIET, "memory reads 16.0 GB/s, and 30.0 GB/s when calibrated"),
        (load(call_after_s=1.2e-6), QUIET, "the same arithmetic took 1.20 µs and 2.10 µs beside the run"),
        (load(), Spread(1.0, 0.9, 1.5, 30), "repeated steps scattered by 30%"),
    ],
)
def test_each_trace_of_contention_is_a_reason(seen: LoadRecord, repeats: Spread, reason: str) -> None:
    assert noise(seen, repeats, repeats, CALIBRATED) == (reason,)


def test_repeats_at_another_speed_than_the_run_in_sight_are_a_reason() -> None:
    slower = Spread(1.4, 1.38, 1.42, 8)
    (reason,) = noise(load(), slower, QUIET, CALIBRATED)
    assert reason == "the steps in sight took 1.40 s and the repeated ones 1.00 s"
    assert noise(load(), QUIET, slower, CALIBRATED), "either way"


def test_reasons_add_up() -> None:
    scattered = Spread(1.0, 0.5, 2.0, 9)
    assert len(noise(load(others=0.4, steal=0.1, after=10e9), QUIET, scattered, CALIBRATED)) == 4


def test_the_own_process_is_not_another_program() -> None:
    probe = LoadProbe()
    while probe.stop().duration_s < 0.3:
        pass  # a busy loop of our own
    own = probe.stop()
    assert 0 <= own.others < 1
    assert own.duration_s >= 0.3


def test_a_load_is_judged_by_its_parts() -> None:
    assert HostLoad(0.1, 0.01, 1.0).reasons() == []
    assert len(HostLoad(0.2, 0.05, 1.0).reasons()) == 2


def test_the_host_is_known() -> None:
    assert cpu_name()
    assert 1 <= physical_cores() <= usable_cores()
    assert 0 < Limits().job_memory_bytes < memory_bytes()


def test_a_spread_is_the_median_with_its_tenth_and_ninetieth_percentile() -> None:
    summary = spread([float(value) for value in range(1, 12)])
    assert (summary.median_s, summary.p10_s, summary.p90_s, summary.count) == (6.0, 2.0, 10.0, 11)
    assert summary.relative == pytest.approx(8 / 12)


def test_warm_up_ends_when_three_steps_agree() -> None:
    times = iter([9.0, 5.0, 1.0, 1.04, 1.02, 7.0])
    assert warm_up(lambda: next(times))
    assert next(times) == 7.0, "no step after the three that agree"
    assert not agrees([1.0, 1.0])


def test_warm_up_gives_up_on_a_host_that_never_settles() -> None:
    times = iter(float(2**index) for index in range(100))
    assert not warm_up(lambda: next(times), most=6)
    assert next(times) == 2.0**6
