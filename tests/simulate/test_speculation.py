"""The simulator of rounds against the engine, count for count, and against the formula, on average."""

import doctest
from functools import cache
from typing import Any

import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from core.analytic.speculative import acceptance_rate, expected_tokens
from core.analytic.step_record import PREFILL_TOKENS
from core.errors import RequestError
from core.simulate import speculation
from core.simulate.speculation import Answer, by_chance, given, replayed, same_counts, simulate

ROUNDS = 4000


@cache
def engine(cache: str) -> Any:
    from tests.engine.small import small_engine  # noqa: PLC0415 - the other tests here run without torch

    return small_engine(cache, page_tokens=2)  # type: ignore[arg-type]


@cache
def speculator(name: str, cache: str, guesses: int) -> Any:
    from core.engine.speculation import ModelSpeculator, NGramSpeculator  # noqa: PLC0415

    if name == "ngram":
        return NGramSpeculator(guesses)
    return ModelSpeculator(engine(cache), guesses, layers=1 if name == "first layer" else None)


@pytest.mark.torch
@settings(max_examples=25, deadline=None)
@given_values(
    how=st.tuples(
        st.sampled_from(["ngram", "first layer", "itself"]),
        st.sampled_from(["contiguous", "paged"]),
        st.integers(1, 6),
    ),
    prompt=st.lists(st.integers(0, 5), min_size=1, max_size=9),
    most=st.integers(1, 24),
    temperature=st.sampled_from([0.0, 0.7]),
    ends=st.booleans(),
)
def test_the_engine_takes_exactly_these_steps(
    how: tuple[str, str, int], prompt: list[int], most: int, temperature: float, *, ends: bool
) -> None:
    from core.engine.sampling import Sampling  # noqa: PLC0415

    name, cache, guesses = how
    made = engine(cache).generate(
        prompt,
        Sampling(temperature, seed=3),
        max_tokens=most,
        end_tokens=frozenset(range(0, 256, 16)) if ends else frozenset(),
        speculator=speculator(name, cache, guesses),
    )
    answer = Answer(
        len(prompt), most, guesses, len(made.token_ids), shared_tokens=made.steps[0].shared_tokens
    )
    rounds = replayed(answer, made.steps)
    assert same_counts(rounds, made.steps)
    assert sum(one.new_tokens for one in rounds) == sum(step.new_tokens for step in made.steps)
    if len(made.steps) > 1:
        assert not same_counts(rounds[:-1], made.steps)


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("guesses", [1, 5])
def test_the_mean_is_the_formulas(acceptance: float, guesses: int) -> None:
    decide = by_chance(acceptance, seed=1)
    rounds = simulate(Answer(1, 10**9, guesses, 1 + ROUNDS), decide)[1:]
    mean = sum(1 + one.accepted_tokens for one in rounds) / len(rounds)
    assert mean == pytest.approx(float(expected_tokens(acceptance, guesses)), rel=0.05)
    counts = [one.drafted_tokens for one in rounds], [one.accepted_tokens for one in rounds]
    assert acceptance_rate(*counts) == pytest.approx(acceptance, abs=0.03)


def test_a_seed_repeats_the_rounds() -> None:
    first, again, other = (simulate(Answer(3, 50, 4), by_chance(0.5, seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_a_long_prompt_is_read_in_pieces() -> None:
    rounds = simulate(Answer(2 * PREFILL_TOKENS + 7, 1, 3), by_chance(0.5, 0))
    assert [(one.kind, one.new_tokens) for one in rounds] == [
        ("prefill", PREFILL_TOKENS),
        ("prefill", PREFILL_TOKENS),
        ("prefill", 7),
    ]


def test_behind_a_wrong_guess_nobody_looks() -> None:
    (_, one, *_) = simulate(Answer(2, 20, 4), lambda most: [True, False, True, True][:most])
    assert (one.drafted_tokens, one.accepted_tokens, one.new_tokens) == (4, 1, 5)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(RequestError, match="must be 1 or more"):
        simulate(Answer(0, 4, 2), by_chance(0.5, 0))
    with pytest.raises(RequestError, match=r"up to 4 tokens; got 5"):
        simulate(Answer(1, 4, 2, 5), by_chance(0.5, 0))
    with pytest.raises(RequestError, match="up to 2 guesses here; 3 were decided"):
        simulate(Answer(1, 9, 2), lambda _: [True] * 3)
    with pytest.raises(RequestError, match="Share fewer"):
        simulate(Answer(4, 4, 2, shared_tokens=4), by_chance(0.5, 0))
    with pytest.raises(RequestError, match=r"from 0 to 1; got 50"):
        by_chance(50, 0)
    assert len(simulate(Answer(1, 9, 2), given([], []))) == 9


def test_examples_hold() -> None:
    assert doctest.testmod(speculation) == (0, 2)
