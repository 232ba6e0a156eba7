"""Sharing steps changes nothing: together = one by one, pieces = whole, preempted = undisturbed."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from core.analytic.batching_policy import POLICIES, Continuous, Dynamic, Policy, Static
from core.engine.engine import CacheKind, Engine
from core.engine.records import Request, Service, TokenEvent
from core.engine.sampling import GREEDY, Sampling
from core.engine.scheduler import Serving
from tests.engine.small import WINDOW, requests, small_engine

pytestmark = pytest.mark.torch

LENGTHS = [(9, 7), (1, 12), (14, 3), (5, 9), (3, 1)]
#: Random enough that a changed draw would show.
WARM = Sampling(temperature=1.0, top_k=50, seed=3)


def tokens(service: Service) -> list[list[int]]:
    return [generation.token_ids for generation in service.generations]


def alone(engine: Engine, asked: list[Request]) -> list[list[int]]:
    return [
        engine.generate(request.prompt_ids, request.sampling, max_tokens=request.max_tokens).token_ids
        for request in asked
    ]


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cache", ["contiguous", "paged", "none"])
def test_requests_that_share_steps_write_what_they_write_alone(
    cache: CacheKind, policy: str, sampling: Sampling
) -> None:
    engine = small_engine(cache)
    asked = [replace(request, arrival=2 * i) for i, request in enumerate(requests(LENGTHS, sampling))]
    service = engine.serve(asked, Serving(POLICIES[policy], max_sequences=3))
    assert tokens(service) == alone(engine, asked)
    assert max(step.num_sequences for step in service.steps) == 3


@pytest.mark.parametrize("step_tokens", [1, 4, 7, 64])
@pytest.mark.parametrize("model", [{}, WINDOW], ids=["all", "window"])
def test_prompts_read_in_pieces_beside_answers_are_as_if_whole(
    step_tokens: int, model: dict[str, Any]
) -> None:
    engine = small_engine("paged", **model)
    asked = requests(LENGTHS, WARM)
    service = engine.serve(asked, Serving(step_tokens=step_tokens))
    assert tokens(service) == alone(small_engine("contiguous", **model), asked)
    assert max(step.new_tokens for step in service.steps) <= step_tokens
    if step_tokens == 7:
        assert {step.kind for step in service.steps} == {"prefill", "mixed", "decode"}


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_a_preempted_request_ends_as_if_undisturbed(sampling: Sampling) -> None:
    engine = small_engine("paged", page_tokens=2)
    asked = requests([(6, 14), (5, 14), (4, 14)], sampling)
    service = engine.serve(asked, Serving(cache_tokens=26))
    assert sum(step.num_preempted for step in service.steps) > 0
    assert tokens(service) == alone(small_engine(), asked)
    assert all(step.pages_used + step.pages_free == 13 for step in service.steps)


def test_the_first_to_come_is_never_preempted() -> None:
    engine = small_engine("paged", page_tokens=2)
    service = engine.serve(requests([(6, 14), (5, 14), (4, 14)]), Serving(cache_tokens=20))
    first = service.generations[0]
    assert [step.index for step in first.steps] == list(range(len(first.steps)))
    assert len(first.steps) == 14


def shape(policy: Policy, lengths: list[tuple[int, int]], size: int, every: int) -> list[int]:
    asked = [replace(request, arrival=i * every) for i, request in enumerate(requests(lengths))]
    service = small_engine().serve(asked, Serving(policy, max_sequences=size))
    return [step.num_sequences for step in service.steps]


def test_static_waits_for_a_full_batch_and_for_its_end() -> None:
    # Two arrive at 0 and 3: they start together. The third starts when both are done.
    assert shape(Static(), [(2, 3), (2, 5), (2, 2)], 2, 3) == [2, 2, 2, 1, 1, 1, 1]


def test_dynamic_starts_without_a_full_batch_after_its_wait() -> None:
    # The first starts alone after 2 steps; those that came meanwhile start together after it.
    assert shape(Dynamic(2), [(2, 4), (2, 2), (2, 2)], 2, 3) == [1, 1, 1, 1, 2, 2]


def test_continuous_lets_everybody_in_and_out_at_every_step() -> None:
    assert shape(Continuous(), [(2, 3), (2, 5), (2, 2)], 2, 1) == [1, 2, 2, 2, 2, 1]


def test_first_come_is_first_served() -> None:
    asked = requests([(8, 2), (1, 2), (1, 2)])
    service = small_engine("paged").serve(asked, Serving(max_sequences=1))
    first_steps = [generation.steps[0].index for generation in service.generations]
    assert first_steps == sorted(first_steps)
    assert [step.num_waiting for step in service.steps] == [2, 2, 1, 1, 0, 0]


def test_events_come_in_the_order_of_steps_and_carry_them() -> None:
    seen: list[tuple[int, TokenEvent]] = []

    def note(index: int, event: TokenEvent) -> None:
        seen.append((index, event))

    asked = [
        replace(request, on_token=partial(note, i)) for i, request in enumerate(requests([(3, 2), (4, 2)]))
    ]
    service = small_engine().serve(asked)
    assert [(i, event.step.index) for i, event in seen] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert [event.token_id for i, event in seen if i == 1] == service.generations[1].token_ids


def test_a_contiguous_cache_serves_fewer_at_once_from_the_same_memory() -> None:
    lengths = [(4, 4)] * 6 + [(10, 30)]

    def most(cache: CacheKind) -> int:
        service = small_engine(cache).serve(requests(lengths), Serving(cache_tokens=80))
        return max(step.num_sequences for step in service.steps)

    assert (most("contiguous"), most("paged")) == (2, 7)


def test_nobody_asking_is_no_step() -> None:
    assert small_engine().serve([]) == Service((), ())
