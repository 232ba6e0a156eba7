"""How fast a machine is at this moment: memory and cores are shared, so it changes within seconds.

On a virtual machine neighbours read through the same memory and run on the other half of the same cores.
Two short checks beside each measurement tell how fast reading is, and how fast everything that waits
for neither memory nor arithmetic.
"""

from __future__ import annotations

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
        call_s: one call of the library with next to nothing to do.
    """

    read_bytes_per_s: float
    call_s: float

    def seconds_at(self, other: Pace, seconds: float, read_bytes: float) -> float:
        """What took ``seconds`` at this pace takes so long at another.

        The part in which memory delivered ``read_bytes`` follows the speed of reading, the rest that of a
        call. Ignored: arithmetic that fills the cores, which neighbours disturb less; do not ask for it.

        >>> then, now = Pace(20e9, 2e-6), Pace(10e9, 3e-6)
        >>> then.seconds_at(now, 0.003, 20e6)   # 1 ms of reading takes 2, and 2 ms of calls take 3
        0.005
        """
        reading_s = min(seconds, read_bytes / self.read_bytes_per_s)
        slower_reading = self.read_bytes_per_s / other.read_bytes_per_s
        slower_calls = other.call_s / self.call_s
        return reading_s * slower_reading + (seconds - reading_s) * slower_calls

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
