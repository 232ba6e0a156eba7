"""How fast a machine is at this moment: memory and cores are shared, so it changes within seconds.

On a virtual machine neighbours read through the same memory and run on the other half of the same cores.
Two short checks beside each measurement tell how fast reading is, and how fast the cores are where all of
them work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.lab.checked_json import Reader

#: The farthest that a pace is followed, either way, before a machine counts as another.
FARTHEST: Final = 2.0


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

        Memory needs a part of them to deliver what is read, and that part follows the root of the speed of
        reading, the rest ``slower_work``; but nothing is read faster than memory delivers. The root, because
        times of recorded cells moved half as far as the check, which is shorter than a run and noisier.
        Ignored: how far the two overlap.

        >>> then, now = Pace(40e9, 1e-6), Pace(10e9, 9e-6)
        >>> then.seconds_at(now, 0.002, 0.0)   # it read nothing
        0.006
        >>> then.seconds_at(now, 0.002, 20e6)   # memory needs a quarter of it
        0.0055
        >>> then.seconds_at(now, 0.002, 80e6)   # it waited for memory, which is a quarter as fast
        0.008
        """
        reads = self.share_read(seconds, read_bytes)
        more_reading = math.sqrt(self.read_bytes_per_s / other.read_bytes_per_s) - 1
        more_working = self.slower_work(other) - 1
        followed_s = seconds + seconds * (reads * more_reading + (1 - reads) * more_working)
        return max(followed_s, seconds * reads * self.read_bytes_per_s / other.read_bytes_per_s)

    def slower_work(self, other: Pace) -> float:
        """How many times as long work that does not wait for memory takes at another pace.

        The root of what a call does: times of recorded runs moved about half as far as the check, which is
        shorter and does nothing but arithmetic.

        >>> Pace(20e9, 1e-6).slower_work(Pace(20e9, 4e-6))
        2.0
        """
        return math.sqrt(other.call_s / self.call_s)

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


def _within(value: float, middle: float) -> float:
    return min(max(value, middle / FARTHEST), middle * FARTHEST)
