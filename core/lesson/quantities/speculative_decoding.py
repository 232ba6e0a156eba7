"""The numbers of "Speculative decoding": what a round brings, what it costs, and from where on it pays."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.analytic.speculative import break_even_acceptance, expected_tokens, round_cost, speedup
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities import guess_rounds
from core.lesson.quantities.guess_rounds import MOST_GUESSES
from core.lesson.quantities.quantity import Quantity

#: What a model and its draft say of one word, for the worked misconception.
_MODEL_SAYS: Final = 0.5
_DRAFT_SAYS: Final = 0.7
_PERCENT: Final = 100.0


def chance(case: LessonCase) -> Amount:
    """The acceptance of one guess, as a share."""
    return Amount(guess_rounds.acceptance(case))


def guesses_made(case: LessonCase) -> Amount:
    """Guesses of a round."""
    return Amount(guess_rounds.guesses(case))


def guess_cost(case: LessonCase) -> Amount:
    """One guess, as a share of a step."""
    return Amount(guess_rounds.draft_cost(case))


def sequences(case: LessonCase) -> Amount:
    """Sequences that share the pass."""
    return Amount(case.scenario.batch)


# --- What a round brings --------------------------------------------------------------------------


def tokens_a_round(case: LessonCase) -> Amount:
    """Tokens of a round on average, the one that the check itself brings among them."""
    return Amount(_tokens(case))


def _tokens(case: LessonCase, more: int = 0) -> float:
    return float(expected_tokens(guess_rounds.acceptance(case), guess_rounds.guesses(case) + more))


def tokens_by_share(case: LessonCase) -> Amount:
    """What comes out where the acceptance is taken for the share of the draft that is kept."""
    return Amount(1 + guess_rounds.acceptance(case) * guess_rounds.guesses(case))


def tokens_without_own(case: LessonCase) -> Amount:
    """What comes out where the token of the check is forgotten."""
    return Amount(_tokens(case) - 1)


def tokens_of_one_less(case: LessonCase) -> Amount:
    """What comes out with the exponent k instead of k + 1."""
    return Amount(_tokens(case, more=-1))


def most_tokens(case: LessonCase) -> Amount:
    """Tokens of a round in which every guess is right."""
    return Amount(1 + guess_rounds.guesses(case))


# --- What it costs, and what is gained ------------------------------------------------------------


def cost_of_a_round(case: LessonCase) -> Amount:
    """A round in steps, with a check that takes as long as one."""
    return Amount(float(round_cost(guess_rounds.guesses(case), guess_rounds.draft_cost(case))))


def speed_up(case: LessonCase) -> Amount:
    """How many times as fast, with a check that takes as long as a step of one token."""
    return Amount(
        float(
            speedup(guess_rounds.acceptance(case), guess_rounds.guesses(case), guess_rounds.draft_cost(case))
        ),
        "×",
    )


def verify_cost(case: LessonCase) -> Amount:
    """The check of all guesses in steps of one token, predicted for this model, chip and batch."""
    return Amount(float(guess_rounds.verify_costs(case)[guess_rounds.guesses(case)]))


def speed_up_here(case: LessonCase) -> Amount:
    """How many times as fast, with this chip's check."""
    return Amount(guess_rounds.lengths(case)[guess_rounds.guesses(case)].here, "×")


def break_even(case: LessonCase) -> Amount:
    """The acceptance from which these guesses pay, in percent; 100 where none is enough."""
    edge = break_even_acceptance(guess_rounds.guesses(case), guess_rounds.draft_cost(case))
    return Amount(_PERCENT * (1.0 if edge is None else edge), "%")


# --- The best length ------------------------------------------------------------------------------


def best_guesses(case: LessonCase) -> Amount:
    """The fastest number of guesses, with a check that takes as long as a step; 0 where none pays."""
    return Amount(int(_by_length(case).argmax()))


def best_speed_up(case: LessonCase) -> Amount:
    """How many times as fast that is."""
    return Amount(float(_by_length(case).max()), "×")


def longest_that_pays(case: LessonCase) -> Amount:
    """The largest number of guesses that is still faster than none."""
    return Amount(int(np.flatnonzero(_by_length(case) >= 1).max()))


def best_if_free(case: LessonCase) -> Amount:
    """What comes out where guessing is taken to cost nothing: as many as are offered."""
    return Amount(int(_by_length(case.having({"draft_cost": 0})).argmax()))


def _by_length(case: LessonCase) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    made = np.arange(MOST_GUESSES + 1)
    return np.asarray(speedup(guess_rounds.acceptance(case), made, guess_rounds.draft_cost(case)))


# --- Why the answers stay what they were ----------------------------------------------------------


def model_says(_: LessonCase) -> Amount:
    """The chance that the model gives a word, in the example."""
    return Amount(_PERCENT * _MODEL_SAYS, "%")


def draft_says(_: LessonCase) -> Amount:
    """The chance that the draft gives the same word."""
    return Amount(_PERCENT * _DRAFT_SAYS, "%")


def kept_share(_: LessonCase) -> Amount:
    """The share of the draft's guesses of that word that is kept: model over draft, at most all."""
    return Amount(_PERCENT * min(_MODEL_SAYS / _DRAFT_SAYS, 1), "%")


def written_share(_: LessonCase) -> Amount:
    """How often the word is written in the end: guessed and kept, or drawn from what the model has beyond."""
    guessed = _DRAFT_SAYS * min(_MODEL_SAYS / _DRAFT_SAYS, 1)
    return Amount(_PERCENT * (guessed + max(_MODEL_SAYS - _DRAFT_SAYS, 0)), "%")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        chance, guesses_made, guess_cost, sequences, tokens_a_round, tokens_by_share, tokens_without_own,
        tokens_of_one_less, most_tokens, cost_of_a_round, speed_up, verify_cost, speed_up_here, break_even,
        best_guesses, best_speed_up, longest_that_pays, best_if_free,
        model_says, draft_says, kept_share, written_share,
    )
}  # fmt: skip
