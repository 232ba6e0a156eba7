"""Speculative decoding: what drafted tokens bring, and what they cost.

A draft proposes g tokens, one pass of the target checks all of them, and one more token comes from that
pass itself. The acceptance rate a is that of one drafted token, not the length of what is accepted. The
formulas are those of Leviathan et al. 2023 (https://arxiv.org/abs/2211.17192), with one cost more: there
the pass that checks takes as long as a step of one token, which ends where it waits for arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.errors import ScenarioError
from core.units import Number

#: Halvings of an interval until nothing is left of a double's digits.
_HALVINGS: Final = 53


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


def speedup(
    acceptance: Number, draft_tokens: Number, draft_cost: Number, verify_cost: Number = 1.0
) -> NDArray[np.float64]:
    """How many times as fast decoding becomes: expected tokens over ``v + g * c``.

    Args:
        acceptance: the chance that a drafted token is accepted.
        draft_tokens: g.
        draft_cost: c, the time of one draft step over that of one target step.
        verify_cost: v, the time of the pass that checks over that of a target step of one token; about 1
            while decode waits for memory.

    Raises:
        ScenarioError: as ``expected_tokens``, or a cost cannot be.

    >>> round(float(speedup(0.44, 5, 0.11)), 4)
    1.1437
    """
    rounds = round_cost(draft_tokens, draft_cost, verify_cost)
    return np.asarray(expected_tokens(acceptance, draft_tokens) / rounds)


def round_cost(draft_tokens: Number, draft_cost: Number, verify_cost: Number = 1.0) -> NDArray[np.float64]:
    """What one round takes, in target steps of one token: ``v + g * c``.

    It is also the tokens that a round must bring to break even.

    Raises:
        ScenarioError: the draft costs less than nothing, or the check nothing.

    >>> float(round_cost(5, 0.25))
    2.25
    """
    cost, verify = np.asarray(draft_cost, np.float64), np.asarray(verify_cost, np.float64)
    if not np.all(cost >= 0):
        raise ScenarioError(
            f"The draft's cost must be 0 or more; got {draft_cost}. Give a share of a target step."
        )
    if not np.all(verify > 0):
        raise ScenarioError(
            f"The cost of the check must be more than 0; got {verify_cost}. Give it in target steps."
        )
    return np.asarray(verify + np.asarray(draft_tokens, np.float64) * cost)


def break_even_acceptance(draft_tokens: int, draft_cost: float, verify_cost: float = 1.0) -> float | None:
    """The acceptance from which guessing pays; None where even certain guesses do not.

    Raises:
        ScenarioError: as ``speedup``.

    >>> round(break_even_acceptance(5, 0.25) or 0, 3), break_even_acceptance(2, 1.5)
    (0.571, None)
    """
    needed = float(round_cost(draft_tokens, draft_cost, verify_cost))
    if needed > float(expected_tokens(1.0, draft_tokens)):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):  # the tokens of a round grow with the acceptance
        middle = (low + high) / 2
        if float(expected_tokens(middle, draft_tokens)) < needed:
            low = middle
        else:
            high = middle
    return high if needed > 1 else 0.0


def best_length(acceptance: float, draft_cost: float, verify_costs: Sequence[float]) -> int:
    """The number of drafted tokens that is fastest; 0 where not guessing is.

    Args:
        acceptance: the chance that a drafted token is accepted.
        draft_cost: c.
        verify_costs: v for 0, 1, 2, ... drafted tokens; the first is 1.

    Raises:
        ScenarioError: as ``speedup``.

    >>> best_length(0.7, 0.1, [1.0] * 17), best_length(0.5, 0.6, [1.0] * 17)
    (4, 0)
    """
    lengths = np.arange(len(verify_costs))
    return int(speedup(acceptance, lengths, draft_cost, np.asarray(verify_costs, np.float64)).argmax())


def acceptance_rate(drafted: Sequence[int], accepted: Sequence[int]) -> float | None:
    """The acceptance of one drafted token, from rounds: accepted over those that were looked at.

    Behind the first wrong guess nothing is looked at, so all drafted tokens are too many to divide by.
    None where nothing was drafted.

    >>> acceptance_rate([4, 4], [1, 4]), acceptance_rate([0], [0])
    (0.8333333333333334, None)
    """
    right = sum(accepted)
    wrong = sum(kept < made for made, kept in zip(drafted, accepted, strict=True))
    return right / (right + wrong) if right + wrong else None
