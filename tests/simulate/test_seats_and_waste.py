"""Seats by time and slots by use: known cases by hand, and sums that must hold whatever the trace."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.batching_policy import POLICIES
from core.simulate.batching import Arrival, Batching, simulate
from core.simulate.seats import SeatPlan, seat_plan
from core.simulate.trace import Trace
from core.simulate.waste import all_slots, fullest, last_length, page_uses, slots

ANSWERS = (3, 17, 5, 9, 2, 20, 4, 8)
QUESTION = [Arrival(12, new) for new in ANSWERS]
ROOM = Batching(num_pages=200, page_tokens=16, max_sequences=4)

TRACES = st.builds(
    Trace,
    requests=st.integers(1, 9),
    prompt_tokens=st.integers(1, 12),
    answer_tokens=st.integers(1, 9),
    spacing=st.integers(0, 4),
    shared_tokens=st.sampled_from([0, 5, 16]),
    seed=st.integers(0, 99),
)


def plan(policy: str, seats: int = 4) -> SeatPlan:
    batching = replace(ROOM, policy=POLICIES[policy], max_sequences=seats)
    return seat_plan(simulate(QUESTION, batching), seats)


def test_thirty_seven_steps_become_twenty_five() -> None:
    static, continuous = plan("static"), plan("continuous")
    assert (static.steps, continuous.steps) == (37, 25)
    assert static.used_share == pytest.approx(68 / (4 * 37))
    assert continuous.used_share == pytest.approx(68 / (4 * 25))


def test_with_one_seat_nobody_waits_for_another_and_nothing_is_idle() -> None:
    assert (plan("static", 1).steps, plan("continuous", 1).steps) == (68, 68)
    assert plan("static", 1).used_share == 1.0


@given(TRACES, st.integers(1, 5), st.integers(1, 40), st.booleans())
def test_no_seat_has_two_guests_and_every_step_is_somebodys(
    trace: Trace, seats: int, step_tokens: int, share: bool
) -> None:
    arrivals = trace.arrivals()
    batching = Batching(99, 4, max_sequences=seats, step_tokens=step_tokens, share=share)
    steps = simulate(arrivals, batching)
    seated = seat_plan(steps, seats)
    taken = [(s.seat, now) for s in seated.sittings for now in range(s.first, s.last + 1)]
    assert len(taken) == len(set(taken))
    assert all(0 <= s.seat < seats for s in seated.sittings)
    assert seated.busy == sum(step.num_sequences for step in steps)


@given(TRACES, st.sampled_from([1, 2, 4, 16]), st.booleans())
def test_every_held_slot_is_filled_now_later_or_never(trace: Trace, page_tokens: int, share: bool) -> None:
    arrivals = trace.arrivals()
    steps = simulate(arrivals, Batching(400 // page_tokens, page_tokens, max_sequences=4, share=share))
    for step in steps:
        uses = page_uses(step, arrivals, page_tokens)
        assert len(uses) == step.pages_used
        assert all(use.slots.held == page_tokens for use in uses)
        if not share:
            assert slots(step, arrivals, page_tokens).filled == sum(tokens for _, tokens in step.held_tokens)
    last = {index: tokens for step in steps for index, tokens in step.held_tokens}
    assert last == {index: last_length(arrival) for index, arrival in enumerate(arrivals)}


def test_a_shared_beginning_is_held_once() -> None:
    arrivals = Trace(
        requests=4, prompt_tokens=3, answer_tokens=4, spread="fixed", spacing=1, shared_tokens=32
    )
    alone, together = (
        simulate(arrivals.arrivals(), Batching(99, 16, max_sequences=4, share=share))
        for share in (False, True)
    )
    assert max(step.pages_used for step in together) < max(step.pages_used for step in alone)
    assert sum(step.shared_tokens for step in together) == 3 * 32
    step = together[fullest(together)]
    assert {use.holders for use in page_uses(step, arrivals.arrivals(), 16)} == {1, 4}


def test_the_last_block_is_empty_by_half_a_block_less_half_a_slot_on_average() -> None:
    """7.5 of 16 slots: over every length of the last block."""
    arrivals = [Arrival(prompt, 1) for prompt in range(1, 17)]
    steps = simulate(arrivals, Batching(16, 16, max_sequences=16))
    assert all_slots(steps, arrivals, 16).never / len(arrivals) == 7.5


def test_in_one_piece_the_longest_request_decides_what_all_hold() -> None:
    arrivals = [Arrival(4, 5), Arrival(20, 12)]
    longest = max(arrival.prompt_tokens + arrival.new_tokens for arrival in arrivals)
    step = simulate(arrivals, Batching(2, longest, max_sequences=2))[0]
    first, second = (use.slots for use in page_uses(step, arrivals, longest))
    assert (first.filled, first.later, first.never) == (4, 4, longest - 8)
    assert (second.filled, second.later, second.never) == (20, 11, 1)
