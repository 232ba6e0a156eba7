"""The roofline: the best rate that a chip allows at an arithmetic intensity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.units import BITS_PER_BYTE, FLOPS_PER_MAC, Number


@dataclass(frozen=True, slots=True)
class RoofMark:
    """Something to stand under a roof: its name, its FLOPs, its bytes moved (some), and its seconds."""

    name: str
    flops: float
    bytes: float
    time_s: float

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return self.flops / self.bytes

    @property
    def flops_per_s(self) -> float:
        """The rate that it reaches."""
        return self.flops / self.time_s


def ridge_flops_per_byte(peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """The intensity at which both limits meet: ``peak / bandwidth``.

    >>> round(ridge_flops_per_byte(989e12, 3.35e12), 1)
    295.2
    """
    return peak_flops_per_s / bandwidth_bytes_per_s


def attainable_flops_per_s(
    intensity: Number, peak_flops_per_s: float, bandwidth_bytes_per_s: float
) -> NDArray[np.float64]:
    """``min(peak, intensity * bandwidth)``: what no kernel can exceed at this intensity.

    >>> float(attainable_flops_per_s(1.0, 989e12, 3.35e12))
    3350000000000.0
    """
    slope = np.asarray(intensity, np.float64) * bandwidth_bytes_per_s
    return np.asarray(np.minimum(slope, peak_flops_per_s))


def critical_tokens(peak_flops_per_s: float, bandwidth_bytes_per_s: float, bits_per_weight: float) -> float:
    """Tokens in a pass from which a linear layer waits for arithmetic: ``ridge * bytes a weight / 2``.

    Each weight is read once and used for one multiply and one add per token. Activations are ignored.

    >>> round(critical_tokens(197e12, 820e9, 8), 1)   # int8 weights, 16-bit arithmetic
    120.1
    """
    ridge = ridge_flops_per_byte(peak_flops_per_s, bandwidth_bytes_per_s)
    return ridge * bits_per_weight / BITS_PER_BYTE / FLOPS_PER_MAC


def utilisation(amount: Number, seconds: Number, peak_per_s: float) -> NDArray[np.float64]:
    """The share of a peak that was reached: MFU for FLOPs, MBU for bytes.

    Above 1 the amount, the time or the peak is wrong: no machine exceeds its peak.

    >>> round(float(utilisation(150e12, 1.0, 312e12)), 4)
    0.4808
    """
    return np.asarray(np.asarray(amount, np.float64) / np.asarray(seconds, np.float64) / peak_per_s)
