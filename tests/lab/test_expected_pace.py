"""What a run is predicted at: what lasts of the machine's pace, and what a single check adds."""

import time
from collections.abc import Iterator

import pytest

from core.lab.pace import Pace
from core.lab.worker.ceilings import MemoryProbe

pytestmark = pytest.mark.torch

USUAL = Pace(20e9, 2e-6)


class Checks:
    """A machine whose checks give what a test says, at times that it says."""

    def __init__(self) -> None:
        self.found, self.now_s = USUAL, 1000.0

    def at(self, found: Pace) -> None:
        """Ten seconds later they give this."""
        self.found, self.now_s = found, self.now_s + 10


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    made = Checks()
    monkeypatch.setattr(MemoryProbe, "call_s", lambda _: made.found.call_s)
    monkeypatch.setattr(MemoryProbe, "_read_for_a_moment", lambda _: made.found.read_bytes_per_s)
    monkeypatch.setattr(time, "monotonic", lambda: made.now_s)
    return made


@pytest.fixture
def memory(checks: Checks) -> Iterator[MemoryProbe]:
    probe = MemoryProbe("cpu")
    with pytest.raises(IndexError):
        probe.expected()
    for _ in range(13):
        checks.at(USUAL)
        assert probe.pace() == USUAL
    yield probe


def test_of_a_small_change_half_is_expected_and_a_large_one_in_full(
    checks: Checks, memory: MemoryProbe
) -> None:
    checks.at(Pace(20e9, 2.2e-6))
    assert memory.pace() == Pace(20e9, 2.2e-6), "the check itself is what it found"
    assert memory.expected().call_s == pytest.approx((2e-6 * 2.2e-6) ** 0.5)
    checks.at(Pace(20e9, 2.6e-6))
    memory.pace()
    assert memory.expected() == Pace(20e9, 2.6e-6)


def test_what_lasts_is_followed_in_full(checks: Checks, memory: MemoryProbe) -> None:
    slower = Pace(18e9, 2.3e-6)
    for _ in range(10):
        checks.at(slower)
        memory.pace()
    found = memory.expected()
    assert (found.read_bytes_per_s, found.call_s) == pytest.approx((18e9, 2.3e-6))


def test_of_a_pause_ago_nothing_counts(checks: Checks, memory: MemoryProbe) -> None:
    checks.now_s += 200
    checks.at(Pace(18e9, 2.3e-6))
    memory.pace()
    found = memory.expected()
    assert (found.read_bytes_per_s, found.call_s) == pytest.approx((18e9, 2.3e-6))
