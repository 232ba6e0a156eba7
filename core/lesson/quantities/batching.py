"""The numbers of "Batching": steps and seats of a small trace, by the simulator of the engine."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.served_trace import (
    CHUNK_TOKENS,
    PROMPT_TOKENS,
    WAYS,
    answers_of,
    policy_request,
    simulated,
)
from core.simulate.batching import SimulatedStep
from core.simulate.seats import SeatPlan, seat_plan

# --- The steps --------------------------------------------------------------------------------------


def steps_of(case: LessonCase, policy: str) -> tuple[SimulatedStep, ...]:
    """The steps that serve the page's trace with a policy."""
    return simulated(policy_request(case, policy), WAYS[policy])


def plan_of(case: LessonCase, policy: str) -> SeatPlan:
    """Who sits where in these steps."""
    return seat_plan(steps_of(case, policy), int(case.number("seats")))


def total_steps(case: LessonCase, policy: str) -> int:
    """From the beginning to the last token, those steps included in which nobody could run."""
    return steps_of(case, policy)[-1].now + 1


def first_token_steps(case: LessonCase, policy: str) -> float:
    """Steps from a request's arrival to its first token, the mean over the requests; 1 where nobody waits."""
    steps, waits = steps_of(case, policy), []
    for index, arrival in enumerate(policy_request(case, policy).arrivals()):
        mine = [step for step in steps if index in step.requests]
        read = [step.now for step in mine if index in step.reading]
        waits.append(read[-1] - arrival.step + 1)
    return float(np.mean(waits))


def used_share(case: LessonCase, policy: str) -> float:
    """The share of seats times steps that gives a token: answer tokens / (seats x steps)."""
    return sum(answers_of(case)) / (case.number("seats") * total_steps(case, policy))


def largest_step(case: LessonCase, policy: str) -> int:
    """The most tokens that one step computes, which is what those who write wait for."""
    return max(step.new_tokens for step in steps_of(case, policy))


# --- Amounts ----------------------------------------------------------------------------------------


def answer_tokens(case: LessonCase) -> Amount:
    """Tokens of all answers together."""
    return Amount(sum(answers_of(case)), "tokens")


def requests(case: LessonCase) -> Amount:
    """Requests of the trace."""
    return Amount(len(answers_of(case)))


def longest_answer(case: LessonCase) -> Amount:
    """Tokens of the longest answer."""
    return Amount(max(answers_of(case)), "tokens")


def prompt_tokens(case: LessonCase) -> Amount:
    """Tokens of each prompt."""
    return Amount(PROMPT_TOKENS, "tokens")


def chunk_tokens(case: LessonCase) -> Amount:
    """The most tokens of a step with chunked prefill."""
    return Amount(CHUNK_TOKENS, "tokens")


def seat_count(case: LessonCase) -> Amount:
    """Requests that may run at once."""
    return Amount(case.number("seats"))


def static_steps(case: LessonCase) -> Amount:
    """Steps with static batching."""
    return Amount(total_steps(case, "static"))


def continuous_steps(case: LessonCase) -> Amount:
    """Steps with continuous batching."""
    return Amount(total_steps(case, "continuous"))


def steps(case: LessonCase) -> Amount:
    """Steps with the page's policy."""
    return Amount(total_steps(case, case.word("policy")))


def fewest_steps(case: LessonCase) -> Amount:
    """What no policy can go below: all tokens over all seats, or the longest answer."""
    tokens, seats = sum(answers_of(case)), case.number("seats")
    return Amount(max(np.ceil(tokens / seats), *answers_of(case)))


def used(case: LessonCase) -> Amount:
    """The share of seats that gives a token, with the page's policy."""
    return Amount(100 * used_share(case, case.word("policy")), "%")


def used_static(case: LessonCase) -> Amount:
    """The same with static batching."""
    return Amount(100 * used_share(case, "static"), "%")


def used_continuous(case: LessonCase) -> Amount:
    """The same with continuous batching."""
    return Amount(100 * used_share(case, "continuous"), "%")


def used_by_the_other(case: LessonCase) -> Amount:
    """The same with the other of the two policies, static or continuous."""
    return used_continuous(case) if case.word("policy") == "static" else used_static(case)


def idle(case: LessonCase) -> Amount:
    """The share of seats that gives none, with the page's policy."""
    return Amount(max(100 - used(case).value, 1e-9), "%")


def used_of_the_longest(case: LessonCase) -> Amount:
    """A wrong way to count: all tokens over seats times the longest answer."""
    return Amount(100 * sum(answers_of(case)) / (case.number("seats") * max(answers_of(case))), "%")


def gain(case: LessonCase) -> Amount:
    """Steps with static batching over those with continuous batching."""
    return Amount(static_steps(case).value / continuous_steps(case).value, "×")


def first_static(case: LessonCase) -> Amount:
    """Mean steps until a request's first token, with static batching."""
    return Amount(first_token_steps(case, "static"))


def first_continuous(case: LessonCase) -> Amount:
    """The same with continuous batching."""
    return Amount(first_token_steps(case, "continuous"))


def _step_s(case: LessonCase, sequences: float) -> float:
    """A decode step of so many sequences on the page's chip, at the scenario's prompt."""
    made = operators(
        case.model,
        batch=np.array(sequences),
        new_tokens=np.array(1.0),
        context=np.array(case.scenario.input_tokens + 1.0),
        weights=case.scenario.weights,
        kv=case.scenario.kv,
    )
    return float(step_time(made, case.machine))


def step_of_one(case: LessonCase) -> Amount:
    """A decode step with one sequence."""
    return Amount(1e3 * _step_s(case, 1.0), "ms")


def step_of_all(case: LessonCase) -> Amount:
    """A decode step with every seat taken."""
    return Amount(1e3 * _step_s(case, case.number("seats")), "ms")


def step_factor(case: LessonCase) -> Amount:
    """How much longer the full step takes."""
    return Amount(step_of_all(case).value / step_of_one(case).value, "×")


def rate_factor(case: LessonCase) -> Amount:
    """Tokens a second with every seat taken, over those of one sequence alone."""
    return Amount(case.number("seats") / step_factor(case).value, "×")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        answer_tokens, requests, longest_answer, prompt_tokens, chunk_tokens, seat_count, static_steps,
        continuous_steps, steps, fewest_steps, used, used_static, used_continuous, used_by_the_other, idle,
        used_of_the_longest, gain, first_static, first_continuous, step_of_one, step_of_all, step_factor,
        rate_factor,
    )
}  # fmt: skip
