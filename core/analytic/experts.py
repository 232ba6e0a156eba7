"""How many experts a pass reads: the counting behind a mixture of experts.

A step of one token reads k of E experts. Many tokens ask for overlapping sets, so a step of N reads
fewer than N * k and, soon, nearly all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.catalog.model import ModelSpec, MoE
from core.units import Number


def distinct_experts(num_experts: int, experts_per_token: int, tokens: Number) -> NDArray[np.float64]:
    """Expected number of different experts that N tokens are sent to: ``E (1 - (1 - k / E)^N)``.

    Exact for one token, where it is k. For more it assumes that every expert is as likely as another;
    real routers have favourites, so it is an upper estimate.

    >>> [round(float(count), 2) for count in distinct_experts(256, 8, np.array([1, 8, 32, 128]))]
    [8.0, 57.42, 163.31, 251.6]
    """
    count = np.asarray(tokens, np.float64)
    if experts_per_token >= num_experts:
        return np.full_like(count, float(num_experts))
    # expm1 and log1p keep the digits that (1 - k/E)^N would lose where k is far below E.
    missed = np.log1p(-experts_per_token / num_experts)
    spread = -num_experts * np.expm1(count * missed)
    return np.asarray(np.where(count == 1, float(experts_per_token), spread))


def expected_reads(model: ModelSpec, tokens: Number) -> NDArray[np.float64]:
    """Different experts that a step of N tokens is expected to read, summed over the layers.

    It is what stands beside ``StepRecord.experts_read``.

    >>> from core.catalog.models import model
    >>> float(expected_reads(model("mixtral-8x7b-v0.1"), 1))
    64.0
    """
    parts = [layer.feed_forward for layer in model.layers if isinstance(layer.feed_forward, MoE)]
    reads = [distinct_experts(part.num_experts, part.experts_per_token, tokens) for part in parts]
    return np.asarray(sum(reads, np.zeros(())))
