"""How fast a machine is at this moment: memory and cores are shared, so it changes within seconds.

On a virtual machine neighbours read through the same memory and run on the other half of the same cores.
Two short checks beside each measurement tell how fast reading is, and how fast the cores are where all of
them work. What lasts for minutes is followed in full, a small difference of a single check by half.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.lab.checked_json import Reader

#: The farthest that a pace is followed, either way, before a machine counts as another.
FARTHEST: Final = 2.0
#: Two checks that differ by a larger factor were made at different paces.
ONE_PACE: Final = 1.2


@dataclass(frozen=True, slots=True)
class Pace:
    """What the two checks gave.

    Attributes:
        read_bytes_per_s: reading a working set that no cache holds.
        call_s: one call of the library: on a processor, arithmetic on a million numbers by all threads; on a
            GPU one with next to nothing to do, which waits for its launch.
    """

    read_bytes_per_s: float
    call_s: float

    def seconds_at(self, other: Pace, seconds: float, read_bytes: float) -> float:
        """What took ``seconds`` at this pace, and read ``read_bytes`` in them, takes so long at another.

        Memory needs a part of them to deliver what is read, and that part follows the speed of reading, the
        rest ``slower_work``. Ignored: how far the two overlap.

        >>> then, now = Pace(40e9, 1e-6), Pace(10e9, 3e-6)
        >>> then.seconds_at(now, 0.002, 0.0)   # it read nothing
        0.006
        >>> then.seconds_at(now, 0.002, 40e6)   # memory needs half of it
        0.007
        >>> then.seconds_at(now, 0.002, 80e6)   # it waited for memory, which is a quarter as fast
        0.008
        """
        reads = self.share_read(seconds, read_bytes)
        more_reading = self.read_bytes_per_s / other.read_bytes_per_s - 1
        more_working = self.slower_work(other) - 1
        return seconds + seconds * (reads * more_reading + (1 - reads) * more_working)

    def slower_work(self, other: Pace) -> float:
        """How many times as long work that does not wait for memory takes at another pace.

        >>> Pace(20e9, 1e-6).slower_work(Pace(20e9, 4e-6))
        4.0
        """
        return other.call_s / self.call_s

    def expected(self, moment: Pace) -> Pace:
        """What to expect where the machine was at this pace for minutes, and a check has just given another.

        A check is shorter than a run and noisier: of a small difference recorded runs showed half. A large
        one is a neighbour who came or went, and was seen in full. Of reading the check itself is a median of
        the last minute, so a change shows there after a few checks.

        >>> Pace(20e9, 1e-6).expected(Pace(20e9, 1.21e-6)).call_s   # all of it
        1.21e-06
        >>> Pace(20e9, 1e-6).expected(Pace(20e9, 1.1881e-6)).call_s   # half: the geometric mean
        1.09e-06
        """
        return Pace(
            _expected(self.read_bytes_per_s, moment.read_bytes_per_s), _expected(self.call_s, moment.call_s)
        )

    def halfway(self, moment: Pace) -> Pace:
        """The geometric mean of the two.

        >>> Pace(20e9, 1e-6).halfway(Pace(5e9, 4e-6))
        Pace(read_bytes_per_s=10000000000.0, call_s=2e-06)
        """
        return Pace(
            math.sqrt(self.read_bytes_per_s * moment.read_bytes_per_s), math.sqrt(self.call_s * moment.call_s)
        )

    @classmethod
    def middle(cls, found: Sequence[Pace]) -> Pace:
        """The median of either check."""
        return cls(
            statistics.median(pace.read_bytes_per_s for pace in found),
            statistics.median(pace.call_s for pace in found),
        )

    def share_read(self, seconds: float, read_bytes: float) -> float:
        """The part of the speed of memory at which something reads, at most 1."""
        return min(1.0, read_bytes / self.read_bytes_per_s / seconds)

    def towards(self, other: Pace) -> Pace:
        """The other pace, or the farthest towards it that is still followed."""
        return Pace(
            _within(other.read_bytes_per_s, self.read_bytes_per_s), _within(other.call_s, self.call_s)
        )

    @classmethod
    def from_reader(cls, reader: Reader) -> Pace:
        """Read it back, or raise a RecordError."""
        return cls(reader.number("read_bytes_per_s", 1), reader.number("call_s", 1e-9, 1))


def _expected(lasting: float, now: float) -> float:
    if max(lasting, now) > ONE_PACE * min(lasting, now):
        return now
    return math.sqrt(lasting * now)


def _within(value: float, middle: float) -> float:
    return min(max(value, middle / FARTHEST), middle * FARTHEST)
