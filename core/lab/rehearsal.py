"""A rehearsal: the calibration's own model answers a few short requests in a run's formats, just before it.

Two checks tell how fast reading and arithmetic are, but kernels do not follow them alike, and a calibration
may have timed a format in a bad minute. What the rehearsal takes, over what the calibration predicts of it,
shows both at once. It is of no shape in the catalogue, so it never sees the run that is predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    def followed(self) -> Rehearsal:
        """How many times as long the run is predicted to take for it: half, the geometric mean with none.

        A rehearsal lasts about half a second and is as noisy as that; of what it showed, recorded runs of
        other shapes showed half. Ignored: what is more than ``FARTHEST``.

        >>> Rehearsal(1.21, 0.81).followed
        Rehearsal(prefill=1.1, decode=0.9)
        """
        return Rehearsal(_half(self.prefill), _half(self.decode))

    @classmethod
    def from_reader(cls, reader: Reader) -> Rehearsal:
        """Read it back, or raise a RecordError."""
        return cls(reader.number("prefill", 1e-6, 1e6), reader.number("decode", 1e-6, 1e6))


#: Where there is no rehearsal, a run takes what is predicted.
AS_PREDICTED = Rehearsal(1.0, 1.0)


def _half(ratio: float) -> float:
    return math.sqrt(min(max(ratio, 1 / FARTHEST), FARTHEST))
