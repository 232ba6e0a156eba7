"""Real processes exchange messages for a calibration; where they cannot, it goes on and says so."""

from collections.abc import Callable

import pytest

from core.errors import JobError
from core.lab.worker import calibrate as calibrate_module
from core.lab.worker import exchanges
from core.lab.worker.calibrate import PHASE
from core.lab.worker.effort import FULL, QUICK
from core.lab.worker.loop import StopRequestedError

pytestmark = pytest.mark.torch

SIZES = (256, 65_536)


def test_two_processes_exchange_every_size_of_both_kinds() -> None:
    link = exchanges.local_link(SIZES, rounds=2, repeats=3, should_stop=lambda: False)
    assert [(each.kind, each.message_bytes) for each in link.samples] == [
        (kind, size) for kind in ("all_reduce", "all_gather") for size in SIZES
    ]
    assert all(0 < each.p10_s <= each.median_s <= each.p90_s for each in link.samples)
    assert (link.ranks, link.backend) == (2, "gloo")
    assert link.latency_s >= 0
    assert link.bytes_per_s > 0


def test_a_quick_calibration_and_a_gpu_have_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "local_link", pytest.fail)
    assert calibrate_module._link("cpu", QUICK, print) == (None, ())
    assert calibrate_module._link("cuda", FULL, print) == (None, ())


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (JobError("All 2 processes must live."), "All 2 processes must live."),
        (OSError(11, "Resource temporarily unavailable"), "Resource temporarily unavailable"),
        (RuntimeError("the server socket has failed"), "the server socket has failed"),
    ],
)
def test_a_calibration_goes_on_where_processes_cannot_start(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, words: str
) -> None:
    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(calibrate_module, "local_link", fail)
    link, (said,) = calibrate_module._link("cpu", FULL, lambda *_: None)
    assert link is None
    assert said.startswith("What processes of this computer exchange could not be measured")
    assert words in said


def test_a_cancelled_calibration_leaves_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def asks(_sizes: object, _rounds: int, _repeats: int, should_stop: Callable[[], bool]) -> None:
        should_stop()

    def cancelled(phase: str, _fraction: float | None) -> None:
        assert phase == PHASE
        raise StopRequestedError

    monkeypatch.setattr(calibrate_module, "local_link", asks)
    with pytest.raises(StopRequestedError):
        calibrate_module._link("cpu", FULL, cancelled)
