"""Which formats of the cache a turn of a calibration times."""

from types import SimpleNamespace

import pytest

from core.lab.fit import Sample
from core.lab.worker import calibrate as calibrate_module
from core.lab.worker.calibration_turn import OFTEN, OTHER_CACHES, Measuring
from core.lab.worker.effort import FULL
from core.lab.worker.steadiness import always_steady

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("weights", OTHER_CACHES)
def test_seldom_formats_of_the_cache_have_one_turn_and_int8_every_one(
    monkeypatch: pytest.MonkeyPatch, weights: str
) -> None:
    timed: list[str] = []

    def note(_: Measuring, kv: str, __: object) -> list[Sample]:
        timed.append(kv)
        return []

    monkeypatch.setattr(Measuring, "_passes", lambda _: iter(()))
    monkeypatch.setattr(Measuring, "_whole_step", lambda *_: None)
    monkeypatch.setattr(Measuring, "_of_another_cache", note)
    engine = SimpleNamespace(weights=weights)
    memory = SimpleNamespace(read_bytes_per_s=lambda: 1e9)
    for again in (False, True):
        timed.clear()
        turn = Measuring(engine, FULL, memory, always_steady(1e-6), again)  # type: ignore[arg-type]
        turn.turn(lambda _: None)
        expected = [kv for kv in OTHER_CACHES[weights] if kv in OFTEN or not again]
        assert timed == expected
    assert OFTEN == ("int8",)


def test_a_slow_host_has_every_format_once_and_no_turn_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines = [SimpleNamespace(weights=str(number)) for number in range(5)]
    clock = iter((9.0, 10.0, 11.0))
    monkeypatch.setattr(calibrate_module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    timed = list(calibrate_module._in_time(engines, 2, 10.0))  # type: ignore[arg-type]
    assert [each.weights for each in timed] == ["0", "1", "2", "3"]
