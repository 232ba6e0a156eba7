"""How fast a machine is at this moment: memory and cores are shared, so it changes within seconds.

On a virtual machine neighbours read through the same memory and run on the other half of the same cores.
Two short checks beside each measurement tell how fast reading is, and how fast everything that waits
for neither memory nor arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.lab.checked_json import Reader

#: The farthest that a pace is followed, either way, before a machine counts as another.
FARTHEST: Final = 2.0
#: A kernel that reads at this part of the speed of memory, or less, does not wait for it.
NO_WAIT: Final = 0.7


@dataclass(frozen=True, slots=True)
class Pace:
    """What the two checks gave.

    Attributes:
        read_bytes_per_s: reading a working set that no cache holds.
        call_s: one call of the library with next to nothing to do.
    """

    read_bytes_per_s: float
    call_s: float

    def seconds_at(self, other: Pace, seconds: float, read_bytes: float) -> float:
        """What took ``seconds`` at this pace, and read ``read_bytes`` in them, takes so long at another.

        What reads nothing follows the speed of a call. What reads as fast as memory delivers follows the
        speed of reading. What reads slower works while it waits: the farther it was from that speed, the more
        it follows the speed of arithmetic, which neighbours disturb less than calls, by about the root. And
        nothing reads faster than memory. Ignored: arithmetic that fills the cores; do not ask for it.

        >>> then, now = Pace(20e9, 1e-6), Pace(10e9, 4e-6)
        >>> then.seconds_at(now, 0.002, 40e6)   # it waited for memory, which is half as fast
        0.004
        >>> then.seconds_at(now, 0.002, 2e6)   # it worked and hardly read
        0.004
        >>> then.seconds_at(now, 0.002, 0.0)   # it was calls
        0.008
        """
        slower_calls = other.call_s / self.call_s
        if not read_bytes:
            return seconds * slower_calls
        reads = self.share_read(seconds, read_bytes)
        follows = max(0.0, (reads - NO_WAIT) / (1 - NO_WAIT))
        slower_reading = self.read_bytes_per_s / other.read_bytes_per_s
        expected_s = seconds * (follows * slower_reading + (1 - follows) * math.sqrt(slower_calls))
        return max(expected_s, reads * seconds * slower_reading)

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
