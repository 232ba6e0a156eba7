"""Guessing changes the speed and nothing else: greedy texts are the same, sampled ones as likely."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from core.engine.batch import Sequence
from core.engine.engine import CacheKind, Engine
from core.engine.records import Generation
from core.engine.sampling import GREEDY, Sampler, Sampling
from core.engine.scheduler import Serving
from core.engine.speculation import Asked, Guess, ModelSpeculator, NGramSpeculator, Speculator, Verifier
from core.errors import CheckpointError, RequestError
from tests.engine.forward import random_ids
from tests.engine.small import requests, small_engine

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
#: A prompt that repeats itself, so that an n-gram is found.
PROMPT = random_ids(5) * 3
DRAWS = 4000


def speculators(engine: Engine) -> dict[str, Speculator]:
    return {
        "ngram": NGramSpeculator(),
        "first layer": ModelSpeculator(engine, layers=1),
        "itself": ModelSpeculator(engine, num_guesses=3),
        "another model": ModelSpeculator(small_engine(num_hidden_layers=3, head_dim=16), num_guesses=5),
    }


NAMES = tuple(speculators(small_engine()))


def accepted(generation: Generation) -> tuple[int, int]:
    """Guesses that were right, and all of them."""
    steps = generation.steps
    return sum(step.accepted_tokens for step in steps), sum(step.drafted_tokens for step in steps)


@pytest.mark.parametrize("cache", ["contiguous", "paged", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_greedy_texts_are_those_without_guesses(name: str, cache: CacheKind) -> None:
    engine = small_engine(cache, page_tokens=2)
    speculator = speculators(engine)[name]
    for max_tokens in (1, 2, 17):
        plain = engine.generate(PROMPT, GREEDY, max_tokens=max_tokens)
        guessed = engine.generate(PROMPT, GREEDY, max_tokens=max_tokens, speculator=speculator)
        assert guessed.token_ids == plain.token_ids
        assert guessed.stop_reason == plain.stop_reason
    right, drafted = accepted(guessed)
    assert 0 <= right <= drafted
    assert len(guessed.token_ids) == right + len(guessed.steps)
    if name == "itself":
        assert right == drafted > 0
        assert len(guessed.steps) < len(plain.steps) / 2


@pytest.mark.parametrize("name", NAMES)
def test_requests_that_share_steps_and_pages_may_be_guessed(name: str) -> None:
    lengths = [(6, 14), (5, 14), (4, 14)]
    engine = small_engine("paged", page_tokens=2)
    speculator = speculators(engine)[name]
    service = engine.serve(requests(lengths), Serving(cache_tokens=26, speculator=speculator))
    plain = small_engine().serve(requests(lengths))
    assert [one.token_ids for one in service.generations] == [one.token_ids for one in plain.generations]
    assert service.steps[-1].pages_used + service.steps[-1].pages_free == 13
    assert engine.serve(requests([(24, 2)]), Serving(cache_tokens=26)).steps[0].pages_used == 12


@pytest.mark.parametrize("step_tokens", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", NAMES)
def test_guesses_take_what_others_leave_of_a_step(name: str, step_tokens: int) -> None:
    engine = small_engine("paged", page_tokens=2)
    asked = requests([(6, 14), (5, 14), (4, 14)])
    serving = Serving(step_tokens=step_tokens, share=False)
    guessed = engine.serve(asked, replace(serving, speculator=speculators(engine)[name]))
    plain = engine.serve(asked, serving)
    assert [one.token_ids for one in guessed.generations] == [one.token_ids for one in plain.generations]
    assert all(step.new_tokens <= step_tokens for step in guessed.steps)
    for step in guessed.steps:  # nobody is left out for somebody's guesses
        alive = [one.steps[0].index <= step.index <= one.steps[-1].index for one in guessed.generations]
        assert step.num_sequences == min(sum(alive), step_tokens)


@pytest.mark.parametrize("kv", ["bf16", "int8", "int4"])
@pytest.mark.parametrize("cache", ["contiguous", "paged"])
def test_a_rounded_cache_is_rounded_the_same_with_guesses(cache: CacheKind, kv: str) -> None:
    engine = small_engine(cache, kv, page_tokens=2)
    plain = engine.generate(PROMPT, GREEDY, max_tokens=20)
    for speculator in speculators(engine).values():
        assert engine.generate(PROMPT, GREEDY, max_tokens=20, speculator=speculator).token_ids == (
            plain.token_ids
        )


def test_a_fork_may_take_the_place_of_one_that_waits() -> None:
    """The draft gives the place of a preempted answer to who writes now, and catches up later."""
    engine = small_engine("paged", page_tokens=1)
    serving = Serving(max_sequences=2, cache_tokens=30, speculator=ModelSpeculator(engine, 3, layers=1))
    server = engine.server(serving, 24)
    first, second = (server.submit(request) for request in requests([(6, 18), (6, 18)]))
    while not server.steps or not server.steps[-1].num_preempted:
        server.step()
    server.fork(first, GREEDY)
    while not server.is_done:
        server.step()
    plain = small_engine().serve(requests([(6, 18), (6, 18)])).generations
    texts = [run.finish().token_ids for run in server.runs]
    assert texts == [plain[0].token_ids, plain[1].token_ids, plain[0].token_ids]
    assert second.stop_reason == "length"


def test_the_pages_of_wrong_guesses_are_given_back_at_once() -> None:
    engine = small_engine("paged", page_tokens=1)
    server = engine.server(Serving(speculator=ModelSpeculator(engine, layers=1)), 40)
    run = server.submit(requests([(6, 30)])[0])
    while not server.is_done:
        server.step()
        assert len(run.sequence.table.pages) == (0 if run.stop_reason else run.sequence.num_cached)
    assert sum(step.accepted_tokens for step in server.steps) > 0
    assert sum(step.accepted_tokens < step.drafted_tokens for step in server.steps)


def test_an_end_token_among_the_guesses_ends_the_text() -> None:
    engine = small_engine()
    plain = engine.generate(PROMPT, GREEDY, max_tokens=12).token_ids
    ends = frozenset({plain[4]})
    expected = engine.generate(PROMPT, GREEDY, max_tokens=12, end_tokens=ends)
    guessed = engine.generate(
        PROMPT, GREEDY, max_tokens=12, end_tokens=ends, speculator=ModelSpeculator(engine, 9)
    )
    assert (guessed.token_ids, guessed.stop_reason, guessed.text) == (
        expected.token_ids,
        "end",
        expected.text,
    )


def toy_verifier(probabilities: list[list[float]], guess: Guess, seed: int) -> list[int]:
    # A chance of zero is a logit far below the others; minus infinity would be no logit.
    logits = torch.tensor(probabilities).clamp_min(1e-30).log()
    verifier = Verifier(Sampler(Sampling(temperature=1.0, seed=seed), CPU), guess)
    chosen: list[int] = verifier.choose(logits).tolist()
    return chosen


@pytest.mark.parametrize(
    "draft", [[0.2, 0.2, 0.2, 0.2, 0.2], [0.7, 0.1, 0.1, 0.05, 0.05], [0.0, 0.0, 0.1, 0.2, 0.7]]
)
def test_a_verified_token_is_distributed_as_the_model_has_it(draft: list[float]) -> None:
    target = [0.5, 0.25, 0.15, 0.1, 0.0]
    q = torch.tensor([draft])
    drawn = q.expand(DRAWS, -1).multinomial(1, generator=torch.Generator().manual_seed(1))[:, 0].tolist()
    chosen = [toy_verifier([target, target], Guess([token], q), seed)[0] for seed, token in enumerate(drawn)]
    counts = Counter(chosen)
    assert counts[4] == 0
    chi_square = sum((counts[i] - DRAWS * p) ** 2 / (DRAWS * p) for i, p in enumerate(target[:4]))
    assert chi_square < 16.3  # one in a thousand, with three degrees of freedom
    kept = sum(one == other for one, other in zip(chosen, drawn, strict=True)) / DRAWS
    expected = sum(min(p, p_draft) for p, p_draft in zip(target, draft, strict=True))
    assert kept == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("name", ["ngram", "first layer"])
def test_sampled_texts_are_as_likely_as_without_guesses(name: str) -> None:
    """The third new token of many seeds, with and without guesses, from the same distribution."""
    engine = small_engine("paged", num_hidden_layers=2, vocab_size=256)
    speculator = speculators(engine)[name]
    asked = [
        replace(request, prompt_ids=PROMPT)
        for request in requests([(1, 4)] * 1200, Sampling(temperature=0.8, top_k=3))
    ]
    serving = Serving(max_sequences=200)
    plain, guessed = (
        Counter(generation.token_ids[2] for generation in engine.serve(asked, how).generations)
        for how in (serving, replace(serving, speculator=speculator))
    )
    common = [token for token, count in plain.most_common(12) if count >= 20]
    observed, expected = ([counts[token] for token in common] for counts in (guessed, plain))
    assert len(common) >= 3
    table = torch.tensor([observed, expected], dtype=torch.float64)
    by_chance = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / table.sum()
    assert float(((table - by_chance) ** 2 / by_chance).sum()) < 3.3 * len(common)


def test_an_ngram_guesses_what_followed_the_longest_and_latest_match() -> None:
    ids = [1, 2, 3, 9, 1, 2, 4, 8, 5, 2, 7, 1, 2]
    ask = Asked(Sequence(ids), Sampler(GREEDY, CPU), 2)
    assert NGramSpeculator().guess([ask]) == [Guess([4, 8])]
    assert NGramSpeculator(longest=1).guess([ask]) == [Guess([7, 1])]
    assert NGramSpeculator().guess([Asked(Sequence([1, 2, 3]), ask.sampler, 2)]) == [Guess([])]


def test_a_draft_of_another_vocabulary_is_refused() -> None:
    engine = small_engine()
    with pytest.raises(RequestError, match=r"vocabulary of its model.*256 tokens.*another.*512.*\.$"):
        engine.generate(
            PROMPT, GREEDY, max_tokens=3, speculator=ModelSpeculator(small_engine(vocab_size=512))
        )
    assert engine.generate(PROMPT, GREEDY, max_tokens=3).stop_reason == "length"


def test_a_draft_that_is_too_short_or_has_too_few_layers_is_refused() -> None:
    engine = small_engine()
    short = ModelSpeculator(small_engine(max_position_embeddings=16))
    with pytest.raises(RequestError, match=r"context that a request may need, 18 tokens; it has 16"):
        engine.generate(PROMPT, GREEDY, max_tokens=3, speculator=short)
    with pytest.raises(RequestError, match="from 1 to 2 of them; got 3"):
        ModelSpeculator(engine, layers=3)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_whose_logits_are_no_numbers_is_refused(temperature: float) -> None:
    target, draft = small_engine(), small_engine()
    draft.model.final_norm_weight[3] = torch.nan
    with pytest.raises(CheckpointError, match="logits of a draft must be finite"):
        target.generate(random_ids(5), Sampling(temperature), max_tokens=4, speculator=ModelSpeculator(draft))
