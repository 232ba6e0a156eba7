"""A small tensor with one value far off: the example on which granularity is seen."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Shape of the example: 4,096 numbers, so that a row is longer than the largest group.
ROWS: Final = 8
COLUMNS: Final = 512
#: Where the outlier stands.
PLACE: Final = (2, 200)


def outlier_tensor(sigmas: float, seed: int = 0) -> NDArray[np.float32]:
    """Normal numbers of deviation 1, [8, 512], one of them replaced by ``sigmas``; 0 leaves all as drawn.

    >>> float(outlier_tensor(60.0)[PLACE]), outlier_tensor(0.0).shape
    (60.0, (8, 512))
    """
    values = np.random.default_rng(seed).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    if sigmas:
        values[PLACE] = np.float32(sigmas)
    return values
