"""A worker's calibration when something is in its way: stopped in the middle, or no room on the disk."""

from pathlib import Path

import pytest

from core.lab import calibration_file
from core.lab.worker import work
from core.lab.worker.ceilings import MemoryProbe
from core.lab.worker.effort import QUICK
from core.lab.worker.loop import StopRequestedError
from core.units import GIB
from tests.lab.examples import calibration

pytestmark = pytest.mark.torch


def test_a_calibration_that_ends_in_the_middle_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped(*_: object) -> None:
        raise StopRequestedError

    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))
    worker = work.EngineWork("cpu", GIB)
    worker._calibration, worker._memory = calibration(), MemoryProbe("cpu")
    monkeypatch.setattr(work, "calibrate", stopped)
    with pytest.raises(StopRequestedError):
        worker._calibrate(QUICK, lambda *_: None)
    assert worker._calibration == calibration()
    assert not list(tmp_path.rglob("*.json"))


def test_a_calibration_that_cannot_be_kept_serves_from_memory_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = work.EngineWork("cpu", GIB)
    worker._memory = MemoryProbe("cpu")
    monkeypatch.setattr(work, "calibrate", lambda *_: calibration())
    monkeypatch.setattr(calibration_file, "save", lambda _: calibration_file.NOT_KEPT)
    found = worker._calibrate(QUICK, lambda *_: None)
    assert worker._checks().calibration == found
    assert found.machine().notes == (calibration_file.NOT_KEPT,)
