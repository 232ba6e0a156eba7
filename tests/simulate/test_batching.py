"""The simulator against the engine: the same steps, count for count, whatever the trace."""

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analytic.batching_policy import POLICIES, Dynamic, Policy
from core.errors import RequestError
from core.simulate.batching import Arrival, Batching, SimulatedStep, simulate

POLICY = st.sampled_from([*POLICIES.values(), Dynamic(2)])
OWN = st.lists(
    st.builds(Arrival, st.integers(1, 12), st.integers(1, 7), st.integers(0, 12)), min_size=1, max_size=6
)
TRACE = st.builds(
    lambda own, shared: [
        replace(a, prompt_tokens=shared + a.prompt_tokens, shared_tokens=shared) for a in own
    ],
    OWN,
    st.sampled_from([0, 0, 3, 8]),
)
COUNTS = (
    "kind",
    "num_sequences",
    "new_tokens",
    "context_tokens",
    "pages_used",
    "pages_free",
    "num_waiting",
    "num_preempted",
    "shared_tokens",
)


@cache
def engine(page_tokens: int) -> Any:
    from tests.engine.small import small_engine  # noqa: PLC0415

    return small_engine("paged", page_tokens=page_tokens, num_hidden_layers=1)


def counts(step: object) -> list[object]:
    return [getattr(step, name) for name in COUNTS]


def prompt(arrival: Arrival, index: int) -> list[int]:
    """A shared beginning, then tokens of its own from the first on."""
    own = arrival.prompt_tokens - arrival.shared_tokens
    return [7] * arrival.shared_tokens + [100 + index] + [20 + index] * (own - 1)


@pytest.mark.torch
@settings(max_examples=40, deadline=None)
@given(
    trace=TRACE,
    batching=st.builds(
        Batching,
        num_pages=st.integers(0, 12),  # more than the longest request needs
        page_tokens=st.sampled_from([1, 2, 4, 21]),
        policy=POLICY,
        max_sequences=st.integers(1, 4),
        step_tokens=st.sampled_from([1, 3, 8, 64]),
        share=st.booleans(),
    ),
)
def test_the_engine_takes_exactly_these_steps(trace: list[Arrival], batching: Batching) -> None:
    from core.engine.records import Request  # noqa: PLC0415 - the other tests here run without torch
    from core.engine.scheduler import Serving  # noqa: PLC0415

    longest = max(arrival.prompt_tokens + arrival.new_tokens for arrival in trace)
    page_tokens = batching.page_tokens
    batching = replace(batching, num_pages=-(-longest // page_tokens) + batching.num_pages)
    asked = [
        Request(prompt(arrival, index), arrival.new_tokens, arrival=arrival.step)
        for index, arrival in enumerate(trace)
    ]
    serving = Serving(
        batching.policy,
        batching.max_sequences,
        batching.step_tokens,
        cache_tokens=batching.num_pages * page_tokens,
        share=batching.share,
    )
    engine(page_tokens).reserve(1)  # pages of an earlier trace are forgotten
    server = engine(page_tokens).server(serving, longest)
    tables: list[Any] = []
    server.watch = lambda _, __, running: tables.append(
        [(server.runs.index(run), tuple(run.sequence.table.pages)) for run in running]
    )
    for request in asked:
        server.submit(request)
    while not server.is_done:
        server.step()
    steps = simulate(trace, batching)
    assert [counts(step) for step in steps] == [counts(step) for step in server.steps]
    assert [list(step.tables) for step in steps] == tables, "the same pages, in the same places"
    for index, run in enumerate(server.runs):
        mine = [number for number, step in enumerate(steps) if index in step.requests]
        assert mine == [step.index for step in run.steps]


@given(trace=TRACE, policy=POLICY, room=st.integers(0, 6))
def test_every_token_is_written_and_no_page_is_lost(trace: list[Arrival], policy: Policy, room: int) -> None:
    steps = simulate(trace, Batching(num_pages=15 + room, page_tokens=2, policy=policy, max_sequences=3))
    assert sum(step.new_tokens for step in steps) >= sum(a.prompt_tokens + a.new_tokens - 1 for a in trace)
    assert all(step.pages_used + step.pages_free == 15 + room for step in steps)
    assert all(one.now < other.now for one, other in itertools.pairwise(steps))


def runs(steps: list[SimulatedStep]) -> int:
    return steps[-1].now + 1


def test_continuous_batching_needs_fewer_steps_than_static() -> None:
    trace = [Arrival(4, 1 + 7 * index % 30) for index in range(24)]
    batching = Batching(num_pages=200, page_tokens=4, max_sequences=4)
    continuous, static = (
        runs(simulate(trace, replace(batching, policy=POLICIES[name]))) for name in ("continuous", "static")
    )
    assert continuous < static


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(RequestError, match=r"fit the cache of 8 tokens by itself; one may grow to 9\..*\.$"):
        simulate([Arrival(6, 3)], Batching(num_pages=4, page_tokens=2))
    with pytest.raises(RequestError, match="must be 1 or more"):
        simulate([Arrival(6, 0)], Batching(num_pages=4, page_tokens=2))
    with pytest.raises(RequestError, match="must be 1 or more"):
        simulate([], Batching(num_pages=4, page_tokens=0))
    assert simulate([], Batching(num_pages=4, page_tokens=2)) == []
