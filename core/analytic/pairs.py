"""Which tokens a query may look at: the counting behind attention's work and its cache reads."""

from __future__ import annotations

import numpy as np

from core.units import Number


def floats(value: Number) -> Number:
    """A count as a float, or an array of them.

    Floats hold every count exactly up to 2**53 and do not overflow as 64-bit integers would.
    """
    return float(value) if np.ndim(value) == 0 else np.asarray(value, np.float64)


def causal_pairs(
    new_tokens: Number, context: Number, window: int | None = None, chunk: int | None = None
) -> Number:
    """Query-token pairs that a causal pass of T new tokens at context S computes, per sequence.

    ``T * (S - T) + T * (T + 1) / 2``: each new token sees all before it and itself. With a window w
    a token sees ``min(position, w)``; with chunks of c it sees those of its own chunk up to itself.
    Both are summed exactly.

    >>> causal_pairs(3, 5), causal_pairs(3, 3), float(causal_pairs(3, 5, window=2))
    (12.0, 6.0, 6.0)
    >>> float(causal_pairs(3, 5, chunk=2))   # the third to fifth token see 1, 2 and 1
    4.0
    """
    first, last = floats(context) - floats(new_tokens), floats(context)
    if chunk is not None:
        return _chunked(last, chunk) - _chunked(first, chunk)
    if window is None:
        return _triangle(last) - _triangle(first)
    growing = _triangle(np.minimum(last, window)) - _triangle(np.minimum(first, window))
    return growing + (np.maximum(last, window) - np.maximum(first, window)) * window


def _triangle(length: Number) -> Number:
    return length * (length + 1) / 2


def _chunked(length: Number, chunk: int) -> Number:
    """Pairs of the first ``length`` tokens: whole chunks, and the beginning of one."""
    whole = np.floor(length / chunk)
    return whole * _triangle(chunk) + _triangle(length - whole * chunk)


def visible_tokens(
    new_tokens: Number, context: Number, window: int | None = None, chunk: int | None = None
) -> Number:
    """Cached tokens that a pass reads, each once, however many of its queries share them.

    >>> visible_tokens(1, 100), float(visible_tokens(4, 100, window=10))
    (100.0, 13.0)
    >>> float(visible_tokens(1, 100, chunk=64)), float(visible_tokens(1, 128, chunk=64))
    (36.0, 64.0)
    """
    if chunk is not None:
        return floats(context) - np.floor((floats(context) - floats(new_tokens)) / chunk) * chunk
    if window is None:
        return floats(context)
    return np.minimum(floats(context), floats(new_tokens) + (window - 1))
