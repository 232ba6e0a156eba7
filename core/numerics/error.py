"""How much rounding took away: mean-square error and signal to noise, of a whole tensor and by row."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def mean_square_error(values: NDArray[np.float32], rounded: NDArray[np.float32]) -> float:
    """``mean((x - q)**2)``, in the square of the numbers' own unit.

    >>> mean_square_error(np.float32([[0.0, 1.0]]), np.float32([[0.0, 0.5]]))
    0.125
    """
    return float(np.mean((values.astype(np.float64) - rounded) ** 2))


def sqnr_db(values: NDArray[np.float32], rounded: NDArray[np.float32]) -> float:
    """Signal to quantisation noise in decibels: ``10 log10(sum x**2 / sum (x - q)**2)``.

    6 dB are one bit. Infinite where nothing was lost.

    >>> round(sqnr_db(np.float32([[1.0, 1.0]]), np.float32([[0.9, 1.1]])), 3)
    20.0
    """
    return ratio_db(float((values.astype(np.float64) ** 2).sum()), _noise(values, rounded))


def sqnr_by_row_db(values: NDArray[np.float32], rounded: NDArray[np.float32]) -> NDArray[np.float64]:
    """The same for each row of a matrix, which is an output channel of a weight; [rows]."""
    signal = (values.astype(np.float64) ** 2).sum(axis=1)
    noise = ((values.astype(np.float64) - rounded) ** 2).sum(axis=1)
    return np.array([ratio_db(float(s), float(n)) for s, n in zip(signal, noise, strict=True)])


def ratio_db(signal: float, noise: float) -> float:
    """``10 log10(signal / noise)``; infinite without noise, minus infinite where only noise is.

    >>> ratio_db(100.0, 1.0), ratio_db(1.0, 0.0)
    (20.0, inf)
    """
    if noise <= 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def _noise(values: NDArray[np.float32], rounded: NDArray[np.float32]) -> float:
    return float(((values.astype(np.float64) - rounded) ** 2).sum())
