"""One timing protocol for all: warm up, repeat, then the median with p10 to p90.

Warm-up ends when three steps in a row agree within 5 %. After that at least 30 steps are timed, or
3 repeats of a prefill. The best of several is quoted for ceilings only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

AGREEING_STEPS: Final = 3
AGREEMENT: Final = 0.05
DECODE_STEPS: Final = 30
PREFILL_REPEATS: Final = 3
#: A warm-up that never settles ends here; a busy host is said, not waited for.
MOST_WARM_UP_STEPS: Final = 20


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and the tenth and ninetieth percentile around it; all in seconds."""

    median_s: float
    p10_s: float
    p90_s: float
    count: int

    @property
    def relative(self) -> float:
        """Half of p10 to p90, as a part of the median."""
        return (self.p90_s - self.p10_s) / (2 * self.median_s) if self.median_s > 0 else 0.0

    def later(self, seconds: float) -> Spread:
        """Each of them with so many seconds more."""
        return Spread(self.median_s + seconds, self.p10_s + seconds, self.p90_s + seconds, self.count)


def spread(samples_s: Sequence[float]) -> Spread:
    """Summarise samples; there must be one or more.

    >>> spread([1.0, 2.0, 3.0]).median_s
    2.0
    """
    p10, median, p90 = np.percentile(np.asarray(samples_s, np.float64), [10, 50, 90])
    return Spread(float(median), float(p10), float(p90), len(samples_s))


def agrees(samples_s: Sequence[float]) -> bool:
    """Whether the last three samples lie within 5 % of each other."""
    last = samples_s[-AGREEING_STEPS:]
    return len(last) == AGREEING_STEPS and max(last) - min(last) <= AGREEMENT * max(last)


def warm_up(step: Callable[[], float], most: int = MOST_WARM_UP_STEPS) -> bool:
    """Repeat ``step`` (which returns its seconds) until it agrees with itself; False if it never did."""
    samples_s: list[float] = []
    while len(samples_s) < most:
        samples_s.append(step())
        if agrees(samples_s):
            return True
    return False
