"""A rehearsal: the calibration's own model answers a few short requests in a run's formats, just before it.

Two checks tell how fast reading and arithmetic are, but kernels do not follow them alike, and a calibration
may have timed a format in a bad minute. What the rehearsal takes, over what the calibration predicts of it,
shows both at once. It is of no shape in the catalogue, so it never sees the run that is predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.lab.checked_json import Reader
from core.lab.pace import FARTHEST


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How many times as long as predicted a rehearsal took, at the pace that the run is predicted for.

    Attributes:
        prefill: until the first token. decode: for each token after it.
    """

    prefill: float
    decode: float

    @property
    def is_followed(self) -> bool:
        """Whether it counts: beyond a factor of ``FARTHEST`` something disturbed it, as a page being drawn.

        >>> Rehearsal(1.4, 7.6).is_followed
        False
        """
        return all(1 / FARTHEST <= ratio <= FARTHEST for ratio in (self.prefill, self.decode))

    @property
    def followed(self) -> Rehearsal:
        """How many times as long the run is predicted to take for it: the square roots, halfway to it.

        A rehearsal lasts about half a second and is as noisy as that; of what it showed, recorded runs of
        other shapes showed half.

        >>> Rehearsal(1.21, 0.81).followed
        Rehearsal(prefill=1.1, decode=0.9)
        """
        if not self.is_followed:
            return AS_PREDICTED
        return Rehearsal(math.sqrt(self.prefill), math.sqrt(self.decode))

    @classmethod
    def from_reader(cls, reader: Reader) -> Rehearsal:
        """Read it back, or raise a RecordError."""
        return cls(reader.number("prefill", 1e-6, 1e6), reader.number("decode", 1e-6, 1e6))


#: Where there is no rehearsal, a run takes what is predicted.
AS_PREDICTED: Final = Rehearsal(1.0, 1.0)
