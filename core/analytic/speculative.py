"""Speculative decoding: what drafted tokens bring, and what they cost.

A draft proposes g tokens, one pass of the target checks all of them, and one more token comes from that
pass itself. The acceptance rate a is that of one drafted token, not the length of what is accepted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.errors import ScenarioError
from core.units import Number


def expected_tokens(acceptance: Number, draft_tokens: Number) -> NDArray[np.float64]:
    """Tokens that one round brings on average: ``(1 - a^(g + 1)) / (1 - a)``, and ``g + 1`` at a = 1.

    Each drafted token is assumed to be accepted independently; the first that is not ends the round.

    Raises:
        ScenarioError: the acceptance is not between 0 and 1, or fewer than 0 tokens are drafted.

    >>> round(float(expected_tokens(0.44, 5)), 4), float(expected_tokens(1.0, 5))
    (1.7728, 6.0)
    """
    rate, drafted = np.asarray(acceptance, np.float64), np.asarray(draft_tokens, np.float64)
    if not np.all((rate >= 0) & (rate <= 1)):
        raise ScenarioError(
            f"The acceptance rate must be from 0 to 1; got {acceptance}. Give a share, no percent."
        )
    if not np.all(drafted >= 0):
        raise ScenarioError(f"The drafted tokens must be 0 or more; got {draft_tokens}. Give a count.")
    missed = 1 - rate
    series = (1 - rate ** (drafted + 1)) / np.where(missed == 0, 1.0, missed)
    return np.asarray(np.where(missed == 0, drafted + 1, series))


def speedup(acceptance: Number, draft_tokens: Number, draft_cost: Number) -> NDArray[np.float64]:
    """How many times as fast decoding becomes: expected tokens over ``1 + g * c``.

    Args:
        acceptance: the chance that a drafted token is accepted.
        draft_tokens: g.
        draft_cost: c, the time of one draft step over that of one target step. The pass that checks is
            taken to last as long as a step of one token, which holds while decode waits for memory.

    Raises:
        ScenarioError: as ``expected_tokens``, or the cost is negative.

    >>> round(float(speedup(0.44, 5, 0.11)), 4)
    1.1437
    """
    cost = np.asarray(draft_cost, np.float64)
    if not np.all(cost >= 0):
        raise ScenarioError(
            f"The draft's cost must be 0 or more; got {draft_cost}. Give a share of a target step."
        )
    rounds = 1 + np.asarray(draft_tokens, np.float64) * cost
    return np.asarray(expected_tokens(acceptance, draft_tokens) / rounds)
