"""What may be asked of the server of traces: limits, odd values, and what a trace is made of."""

from dataclasses import replace
from typing import Any

import pytest

from core.errors import FormatError, RequestError, UserError
from core.lab.serve_request import ServeRequest, Way
from core.simulate.trace import Trace


def test_places_of_its_own_are_a_ways_and_change_no_older_request() -> None:
    request = ServeRequest(ways=(Way(), Way(places=1)))
    assert ServeRequest.from_json(request.to_json()) == request
    assert request.to_json()["ways"][0] == {"policy": "continuous", "cache": "paged", "step_tokens": 2048}
    assert {step.num_sequences for step in request.simulated(request.ways[1])} == {1}
    assert request.batching(request.ways[1]).num_pages == request.batching(request.ways[0]).num_pages
    with pytest.raises(RequestError, match="places must be from 0 to 64; got 65"):
        replace(request, ways=(Way(places=65),)).validate()


def test_a_way_may_do_without_guesses() -> None:
    request = ServeRequest(guesses=3, ways=(Way(), Way(guessing=False)))
    assert [request.guesses_of(way) for way in request.ways] == [3, 0]
    assert ServeRequest.from_json(request.to_json()) == request


def test_a_request_survives_its_json() -> None:
    request = ServeRequest(
        trace=Trace(answers=(3, 4), requests=2), ways=(Way("static"), Way(cache="contiguous"))
    )
    assert ServeRequest.from_json(request.to_json()) == request
    assert ServeRequest.from_json({}) == ServeRequest()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "must be an object; got list"),
        ({"page_tokens": 0}, "page_tokens must be from 1 to 512; got 0"),
        ({"page_tokens": 16.0}, "must have int at 'page_tokens'; got float"),
        ({"page_tokens": True}, "must have int at 'page_tokens'; got bool"),
        ({"places": 10**9}, "places must be from 1 to 64; got 1,000,000,000"),
        ({"surprise": 1}, "has no field 'surprise'"),
        ({"trace": {"requests": 65}}, "requests must be from 1 to 64; got 65"),
        ({"trace": {"spread": "bell"}}, "spread must be one of exponential, fixed; got 'bell'"),
        ({"trace": {"answers": [1, 2]}}, "an answer for each of the 8 requests; got 2"),
        ({"trace": {"requests": 1, "answers": [0]}}, "answers must be from 1"),
        ({"trace": {"answers": "all"}}, "a list of whole numbers at 'answers'"),
        ({"trace": 7}, "A trace must be an object; got int"),
        ({"ways": []}, "served in 1 to 4 ways; got 0"),
        ({"ways": 3}, "must have a list of ways"),
        ({"ways": [{"policy": "magic"}]}, "policy must be one of static, dynamic, continuous; got 'magic'"),
        ({"ways": [{"cache": "none"}]}, "cache must be one of paged, contiguous; got 'none'"),
        ({"ways": [{"step_tokens": 0}]}, "step_tokens must be from 1 to 2,048; got 0"),
        ({"cache_tokens": 16}, "fit the cache of 16 tokens by itself"),
        ({"cache_tokens": -1}, "cache_tokens must be from 0"),
        ({"weights": "fp9"}, "fp9"),
        (
            {"places": 64, "trace": {"requests": 1, "prompt_tokens": 900, "spread": "fixed"}},
            "up to 16,384 slots; 64 places for requests of up to 916 tokens need 58,624",
        ),
        (
            {"trace": {"requests": 64, "prompt_tokens": 400, "answer_tokens": 9, "spread": "fixed"}},
            "up to 24,000 tokens, all ways together; this takes 26,176",
        ),
        (
            {"places": 1, "trace": {"requests": 64, "answer_tokens": 60, "spread": "fixed"}},
            "up to 1,500 steps, all ways together; this takes more",
        ),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_one_sentence(data: Any, sentence: str) -> None:
    with pytest.raises((RequestError, FormatError)) as caught:
        ServeRequest.from_json(data)
    assert isinstance(caught.value, UserError)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_trace_is_drawn_from_its_seed_and_each_part_from_its_own() -> None:
    trace = Trace(requests=12, spacing=3, seed=5)
    assert trace.arrivals() == Trace(requests=12, spacing=3, seed=5).arrivals()
    assert trace.arrivals() != replace(trace, seed=6).arrivals()
    slower = replace(trace, spacing=30).arrivals()
    assert [a.prompt_tokens for a in slower] == [a.prompt_tokens for a in trace.arrivals()]
    steps = [arrival.step for arrival in trace.arrivals()]
    assert steps[0] == 0
    assert steps == sorted(steps)


def test_the_mean_of_many_is_near_what_was_asked_for() -> None:
    drawn = [a for seed in range(40) for a in Trace(requests=64, answer_tokens=20, seed=seed).arrivals()]
    assert sum(a.new_tokens for a in drawn) / len(drawn) == pytest.approx(20, rel=0.06)
    assert max(a.new_tokens for a in drawn) == 80, "cut at four times the mean"


def test_a_shared_beginning_comes_before_the_requests_own_prompt() -> None:
    plain, shared = (Trace(shared_tokens=tokens).arrivals() for tokens in (0, 40))
    assert [b.prompt_tokens - a.prompt_tokens for a, b in zip(plain, shared, strict=True)] == [40] * 8
    assert {arrival.shared_tokens for arrival in shared} == {40}
