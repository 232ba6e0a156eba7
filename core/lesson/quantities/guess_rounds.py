"""Guessing on a case's model and chip: what the check costs, the gain by length, and rounds by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.analytic.speculative import best_length, expected_tokens, round_cost, speedup
from core.lesson.amount import LessonCase, held_tokens
from core.simulate.speculation import Answer, SimulatedRound, by_chance, simulate

#: The longest draft that is offered.
MOST_GUESSES: Final = 16
#: Rounds that a picture shows, and the luck that they are drawn with: near the average for most settings.
_ROUNDS: Final = 8
_SEED: Final = 865
_PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True)
class Length:
    """One number of guesses: the tokens of a round on average, and how many times as fast that is.

    Attributes:
        free: with a check that takes as long as a step of one token. here: with this chip's check.
    """

    guesses: int
    tokens: float
    free: float
    here: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """Some rounds by chance.

    Attributes:
        rounds: each with its guesses and which of them hold. guesses: of a round.
        tokens: that all of them wrote. steps: what they take, in steps of one token.
    """

    rounds: tuple[SimulatedRound, ...]
    guesses: int
    tokens: int
    steps: float


def acceptance(case: LessonCase) -> float:
    """The chance that a guess is right, from 0 to 1."""
    return case.number("acceptance") / _PERCENT


def guesses(case: LessonCase) -> int:
    """Guesses of a round."""
    return int(case.number("guesses"))


def draft_cost(case: LessonCase) -> float:
    """What one guess takes, as a share of a step of one token."""
    return case.number("draft_cost") / _PERCENT


def verify_costs(case: LessonCase) -> NDArray[np.float64]:
    """What checking 0, 1, 2, ... guesses takes, in steps of one token: predicted on the case's machine.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    made = np.arange(MOST_GUESSES + 1, dtype=np.float64)
    scenario, context = case.scenario, held_tokens(case)
    table = operators(
        case.model,
        batch=scenario.batch,
        new_tokens=1 + made,
        context=context + made,
        weights=scenario.weights,
        kv=scenario.kv,
    )
    seconds = step_time(table, case.machine)
    return np.asarray(seconds / seconds[0])


def lengths(case: LessonCase) -> list[Length]:
    """Every number of guesses, from none to the most.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    made, costs = np.arange(MOST_GUESSES + 1), verify_costs(case)
    rate, draft = acceptance(case), draft_cost(case)
    tokens = expected_tokens(rate, made)
    free, here = speedup(rate, made, draft), speedup(rate, made, draft, costs)
    return [Length(int(k), float(tokens[k]), float(free[k]), float(here[k])) for k in made]


def fastest(case: LessonCase) -> int:
    """The number of guesses that is fastest on this chip; 0 where not guessing is.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    return best_length(acceptance(case), draft_cost(case), list(verify_costs(case)))


def rounds(case: LessonCase) -> Rounds:
    """A few rounds, drawn with the same luck each time, and what they take with this chip's check.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    made, rate = guesses(case), acceptance(case)
    most = _ROUNDS * (made + 1) + 1
    answer = Answer(prompt_tokens=1, most_tokens=most + made, num_guesses=made, written_tokens=most)
    some = tuple(simulate(answer, by_chance(rate, _SEED))[1 : 1 + _ROUNDS])
    each = float(round_cost(made, draft_cost(case), float(verify_costs(case)[made])))
    return Rounds(some, made, sum(1 + one.accepted_tokens for one in some), len(some) * each)
