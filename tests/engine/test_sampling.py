"""Choosing tokens: greedy, from the right support, in the right proportions, repeatably."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from core.engine.sampling import Sampler, Sampling, filtered

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
TOY = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05])
#: Chi-square's 0.1 % point for 4 degrees of freedom; the seeds are fixed, so a pass stays a pass.
CRITICAL = 18.47


def draws(sampling: Sampling, chances: Tensor, count: int) -> Tensor:
    return Sampler(sampling, CPU).choose(chances.log().expand(count, -1))


def test_greedy_takes_the_largest() -> None:
    rows = torch.randn(50, 30, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Sampler(Sampling(), CPU).choose(rows), rows.argmax(dim=-1))


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_tokens_come_in_proportion(temperature: float) -> None:
    count = 20_000
    expected = (TOY ** (1 / temperature) / (TOY ** (1 / temperature)).sum()) * count
    seen = draws(Sampling(temperature=temperature, seed=3), TOY, count).bincount(minlength=5)
    assert float(((seen - expected) ** 2 / expected).sum()) < CRITICAL


def test_a_seed_repeats_its_draws_and_another_does_not() -> None:
    first, again, other = (draws(Sampling(temperature=1, seed=seed), TOY, 100) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_successive_draws_of_one_run_differ() -> None:
    sampler = Sampler(Sampling(temperature=1, seed=1), CPU)
    rows = TOY.log().expand(100, -1)
    assert not torch.equal(sampler.choose(rows), sampler.choose(rows))


@pytest.mark.parametrize(
    ("sampling", "support"),
    [
        (Sampling(temperature=1, top_k=1), {0}),
        (Sampling(temperature=1, top_k=2), {0, 1}),
        (Sampling(temperature=1, top_k=5), {0, 1, 2, 3, 4}),
        (Sampling(temperature=1, top_k=100), {0, 1, 2, 3, 4}),
        (Sampling(temperature=1, top_p=0.01), {0}),
        (Sampling(temperature=1, top_p=0.5), {0, 1}),
        (Sampling(temperature=1, top_p=0.8), {0, 1, 2}),
        (Sampling(temperature=1, top_p=0.8, top_k=2), {0, 1}),
        (Sampling(temperature=1e-30), {0}),
        (Sampling(temperature=1.2e-38), {0}),
        (Sampling(temperature=1e-40), {0}),
        (Sampling(temperature=1e-46), {0}),
        (Sampling(temperature=5e-324), {0}),
    ],
)
def test_only_what_is_allowed_comes_and_all_of_it(sampling: Sampling, support: set[int]) -> None:
    assert set(draws(sampling, TOY, 2_000).tolist()) == support


@given(
    scores=st.lists(st.floats(-20, 20), min_size=2, max_size=12),
    top_k=st.integers(0, 12),
    top_p=st.floats(0.01, 1),
)
def test_what_is_allowed_is_the_likeliest_and_no_more_than_asked(
    scores: list[float], top_k: int, top_p: float
) -> None:
    row = torch.tensor([scores])
    kept = filtered(row, Sampling(temperature=1, top_k=top_k, top_p=top_p))[0] > -torch.inf
    assert kept[row[0].argmax()]
    worst = row[0][kept].min()
    assert (row[0][~kept] <= worst).all()
    if 0 < top_k < len(scores):
        assert kept.sum() <= top_k + (row[0] == worst).sum() - 1
    if top_p < 1:
        chances = filtered(row, Sampling(temperature=1, top_k=top_k))[0].softmax(dim=0)
        assert chances[kept].sum() - chances[kept].min() <= top_p + 1e-5


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_are_told_apart(value: float, temperature: float) -> None:
    rows = torch.zeros(2, 5)
    rows[1, 3] = value
    chosen = Sampler(Sampling(temperature=temperature), CPU).choose(rows)
    assert chosen[0] >= 0
    assert chosen[1] == -1
