"""Measurements during which the cores did not change their speed.

On a shared machine neighbours come and go within seconds, and a core whose other half works is a third
slower. A check beside each measurement tells; one during which the speed changed is made again.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

#: Checks that differ by less than this factor were made at one speed.
NEAR: Final = 1.12
#: The usual speed is the middle one of so many checks.
_REMEMBERED: Final = 500

Item = TypeVar("Item")


@dataclass(slots=True)
class Steadiness:
    """Whether the cores run as fast as they usually do.

    Attributes:
        call_s: makes the check: seconds of a call of the library. usual_s: what it gives usually.
        learns: what is usual is the median of the checks, and not given once and for all.
    """

    call_s: Callable[[], float]
    usual_s: float
    learns: bool = False
    _found_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def check(self) -> Check:
        """Make it."""
        now_s = self.call_s()
        if self.learns:
            self._found_s.append(now_s)
            self.usual_s = statistics.median(self._found_s)
        return Check(now_s, near(now_s, self.usual_s))


def always_steady(call_s: float) -> Steadiness:
    """Where nobody looks, or nothing can change: every check gives the same."""
    return Steadiness(lambda: call_s, call_s)


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found: seconds of a call, and whether that is near to what it usually takes."""

    call_s: float
    is_near: bool


@dataclass(frozen=True)
class Repeated(Generic[Item]):
    """Repeats of one measurement, each with the mean of the checks before and after it.

    Attributes:
        steady: those at the usual speed. others: those beside which it changed.
    """

    steady: list[tuple[Item, float]]
    others: list[tuple[Item, float]]

    def kept(self, least: int) -> list[Item]:
        """The steady ones; all of them where fewer than ``least`` are."""
        return [item for item, _ in self._kept(least)]

    def call_s(self, least: int) -> float:
        """The median of the checks beside those that are kept."""
        return statistics.median(call_s for _, call_s in self._kept(least))

    def _kept(self, least: int) -> list[tuple[Item, float]]:
        return self.steady if len(self.steady) >= least else self.steady + self.others


def near(one_s: float, other_s: float) -> bool:
    """Whether two checks were made at one speed.

    >>> near(2.2e-3, 2.3e-3), near(2.2e-3, 2.8e-3)
    (True, False)
    """
    return max(one_s, other_s) <= NEAR * min(one_s, other_s)


def repeated(
    measure: Callable[[], Item], wanted: int, steadiness: Steadiness, may_go_on: Callable[[int], bool]
) -> Repeated[Item]:
    """Measure until ``wanted`` repeats were steady, or until ``may_go_on(made)`` says no."""
    found: Repeated[Item] = Repeated([], [])
    before = steadiness.check()
    while len(found.steady) < wanted and may_go_on(len(found.steady) + len(found.others)):
        item = measure()
        after = steadiness.check()
        kept = found.steady if before.is_near and after.is_near else found.others
        kept.append((item, (before.call_s + after.call_s) / 2))
        before = after
    return found
