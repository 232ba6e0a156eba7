"""Speculation in whole numbers: rounds of guessing, and what of them holds.

A round guesses some tokens, one step of the model looks at them in order, and behind those that are
right stands one token more, which the model chose itself. Given which guesses are right, the steps are
those of the engine, count for count; given a chance, their mean is that of
``core.analytic.speculative.expected_tokens``. Times are not known here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.analytic.step_record import PREFILL_TOKENS, StepKind, StepRecord
from core.errors import RequestError

#: Asked how many tokens may be guessed: for each that is, whether the model agrees.
Decisions = Callable[[int], Sequence[bool]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to be written.

    Attributes:
        prompt_tokens: what is read first. most_tokens: the answer's limit.
        written_tokens: what it has in the end; fewer than its limit where an end token came.
        num_guesses: the most a round.
        shared_tokens: of the prompt, those whose keys and values an earlier request left.
    """

    prompt_tokens: int
    most_tokens: int
    num_guesses: int
    written_tokens: int | None = None
    shared_tokens: int = 0

    @property
    def length(self) -> int:
        """Tokens that are written."""
        return self.most_tokens if self.written_tokens is None else self.written_tokens


@dataclass(frozen=True, slots=True)
class SimulatedRound:
    """What a ``StepRecord`` counts of a step with guesses, under the same names.

    Attributes:
        decided: of each guess, whether it is right; also behind the first wrong one, where nobody looks.
    """

    kind: StepKind
    new_tokens: int
    context_tokens: int
    decided: tuple[bool, ...] = ()

    @property
    def drafted_tokens(self) -> int:
        """Guesses that the step verified."""
        return len(self.decided)

    @property
    def accepted_tokens(self) -> int:
        """Those before the first wrong one."""
        return next((index for index, right in enumerate(self.decided) if not right), len(self.decided))


def simulate(answer: Answer, decisions: Decisions) -> list[SimulatedRound]:
    """The steps that write one answer.

    Args:
        answer: what is read and written.
        decisions: which guesses are right; may guess fewer than it is asked for.

    Raises:
        RequestError: a count cannot be, or more was guessed than was asked for.

    >>> rounds = simulate(Answer(8, 6, num_guesses=3), given([2, 1], [1, 1]))
    >>> [(one.kind, one.new_tokens, one.drafted_tokens, one.accepted_tokens) for one in rounds]
    [('prefill', 8, 0, 0), ('decode', 3, 2, 1), ('decode', 2, 1, 1), ('decode', 1, 0, 0)]
    """
    _check(answer)
    rounds = _read(answer.shared_tokens, answer.prompt_tokens)
    written = 1  # the first token comes with the prompt's last step
    while written < answer.length:
        most = min(answer.num_guesses, answer.most_tokens - written - 1)
        decided = tuple(decisions(most))
        if len(decided) > most:
            raise RequestError(f"A round may have up to {most} guesses here; {len(decided)} were decided.")
        cached = answer.prompt_tokens + written - 1
        rounds.append(SimulatedRound("decode", 1 + len(decided), cached + 1 + len(decided), decided))
        written += 1 + rounds[-1].accepted_tokens
    return rounds


def by_chance(acceptance: float, seed: int) -> Decisions:
    """Guesses of which each is right with the same chance, whatever came before.

    Raises:
        RequestError: the chance is not between 0 and 1.
    """
    if not 0 <= acceptance <= 1:
        raise RequestError(f"The acceptance must be from 0 to 1; got {acceptance}. Give a share, no percent.")
    luck = random.Random(seed)  # noqa: S311 - a simulation, nothing secret
    return lambda most: [luck.random() < acceptance for _ in range(most)]


def given(drafted: Iterable[int], accepted: Iterable[int]) -> Decisions:
    """The decisions of rounds that took place; no guesses behind their end."""
    rounds = iter(zip(drafted, accepted, strict=True))

    def decide(_: int) -> list[bool]:
        made, right = next(rounds, (0, 0))
        return [index < right for index in range(made)]

    return decide


def replayed(answer: Answer, steps: Sequence[StepRecord]) -> list[SimulatedRound]:
    """The steps that the engine must have taken for ``answer``, by its own decisions in its decode steps."""
    decode = [step for step in steps if step.kind == "decode"]
    return simulate(
        answer, given([step.drafted_tokens for step in decode], [step.accepted_tokens for step in decode])
    )


def same_counts(rounds: Sequence[SimulatedRound], steps: Sequence[StepRecord]) -> bool:
    """Whether simulated and recorded steps agree in number and in every count that both have."""
    return len(rounds) == len(steps) and all(
        getattr(one, name) == getattr(step, name)
        for one, step in zip(rounds, steps, strict=True)
        for name in ("kind", "new_tokens", "context_tokens", "drafted_tokens", "accepted_tokens")
    )


def _read(first: int, prompt_tokens: int) -> list[SimulatedRound]:
    """The steps that read a prompt from token ``first`` on, in pieces where it is long."""
    ends = [*range(first + PREFILL_TOKENS, prompt_tokens, PREFILL_TOKENS), prompt_tokens]
    starts = [first, *ends[:-1]]
    return [SimulatedRound("prefill", end - start, end) for start, end in zip(starts, ends, strict=True)]


def _check(answer: Answer) -> None:
    if min(answer.prompt_tokens, answer.most_tokens, answer.length) < 1 or answer.num_guesses < 0:
        raise RequestError(
            "Tokens of a simulated answer must be 1 or more, guesses 0 or more; some are not. Correct them."
        )
    if not 0 <= answer.shared_tokens < answer.prompt_tokens:
        raise RequestError("At least the last token of a prompt must be read; none is left. Share fewer.")
    if answer.length > answer.most_tokens:
        raise RequestError(
            f"An answer may have up to {answer.most_tokens:,} tokens; got {answer.length:,}. Raise its limit."
        )
