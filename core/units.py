"""Bytes, FLOPs and seconds, and how they are written.

Decimal prefixes are powers of ten (GB is 1e9, used for bandwidth and file sizes); binary
prefixes are powers of two (GiB is 2**30, used for memory). A number on a page has three
significant digits and a unit; the exact value belongs in the hover and in the export.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: A count or a quantity: one value, or a sweep of values that broadcast together.
Number = int | float | NDArray[np.floating] | NDArray[np.integer]

KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12
KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40

BITS_PER_BYTE: Final = 8
FLOPS_PER_MAC: Final = 2  # one multiply and one add

_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SMALL: Final = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def significant(value: float, digits: int = 3) -> str:
    """Write ``value`` with ``digits`` significant digits and no exponent.

    >>> significant(0.012345), significant(1234.5), significant(9.996)
    ('0.0123', '1,230', '10.0')
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(value)
    rounded = float(f"{value:.{digits - 1}e}")
    magnitude = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(digits - 1 - magnitude, 0)}f}"


def _scaled(value: float, base: float, prefixes: tuple[str, ...]) -> tuple[float, str]:
    index = 0
    # Compare what will be printed, so that 999.7 MB becomes 1.00 GB and never 1,000 MB.
    while abs(float(f"{value:.2e}")) >= 1000 and index < len(prefixes) - 1:
        value /= base
        index += 1
    return value, prefixes[index]


def format_gib(num_bytes: float) -> str:
    """Write a memory size with a binary prefix.

    >>> format_gib(16_060_522_496)
    '15.0 GiB'
    """
    value, prefix = _scaled(float(num_bytes), 1024.0, _BINARY)
    return f"{significant(value)} {prefix}"


def format_gb(num_bytes: float) -> str:
    """Write a number of bytes with a decimal prefix.

    >>> format_gb(16_060_522_496)
    '16.1 GB'
    """
    return f"{format_si(num_bytes)}B"


def format_si(value: float) -> str:
    """Write a plain count with a decimal prefix, ready for a unit to follow.

    >>> format_si(134_515_008) + "FLOP"
    '135 MFLOP'
    """
    scaled, prefix = _scaled(float(value), 1000.0, _DECIMAL)
    return f"{significant(scaled)} {prefix}"


def format_seconds(seconds: float) -> str:
    """Write a duration in the unit that leaves at least one digit before the point.

    >>> format_seconds(0.0098), format_seconds(75)
    ('9.80 ms', '75.0 s')
    """
    if seconds == 0 or not math.isfinite(seconds):
        return f"{significant(seconds)} s"
    for unit, size in _SMALL:
        if abs(float(f"{seconds / size:.2e}")) >= 1:
            return f"{significant(seconds / size)} {unit}"
    return f"{significant(seconds / 1e-9)} ns"


def format_count(count: float, word: str) -> str:
    """Write a number of things; the word is given for one of them.

    >>> format_count(1.14, "cell"), format_count(1200, "noisy cell")
    ('1 cell', '1,200 noisy cells')
    """
    written = f"{count:,.0f}"
    return f"{written} {word}" if written == "1" else f"{written} {word}s"
