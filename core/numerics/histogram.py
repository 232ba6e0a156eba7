"""How the numbers of a tensor are spread: counts in bins of one width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

BINS: Final = 60


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in bins of one width between ``low`` and ``high``."""

    low: float
    high: float
    counts: tuple[int, ...]

    @property
    def edges(self) -> tuple[float, ...]:
        """The ends of the bins, one more than there are bins.

        >>> Histogram(0.0, 2.0, (3, 1)).edges
        (0.0, 1.0, 2.0)
        """
        return tuple(float(edge) for edge in np.linspace(self.low, self.high, len(self.counts) + 1))


def histogram(values: NDArray[np.float32], bins: int = BINS) -> Histogram:
    """Count numbers in bins from the least to the largest; equal numbers stand in bins of width 1 over all.

    >>> histogram(np.float32([[0, 1, 1, 4]]), 2).counts
    (3, 1)
    """
    counts, edges = np.histogram(values, bins=bins)
    return Histogram(float(edges[0]), float(edges[-1]), tuple(int(count) for count in counts))
