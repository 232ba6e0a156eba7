"""Perplexity, divergence and agreement, held against direct computations on tiny models."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from core.catalog.texts import public_text
from core.engine.engine import Engine
from core.engine.quality.evaluate import Reference, beside_cache, evaluate, logits, score, windows
from core.engine.sampling import GREEDY
from core.errors import CheckpointError, FormatError, RequestError
from tests.engine.embedded import embedded
from tests.engine.forward import random_ids
from tests.engine.small import small_engine
from tests.engine.tiny import save, tiny_model

pytestmark = pytest.mark.torch

IDS = random_ids(50)
CUT = windows(IDS, 50, 20)


@pytest.fixture(scope="module")
def small() -> Engine:
    return small_engine()


def test_perplexity_is_the_cross_entropy_of_transformers(tmp_path: Path) -> None:
    model = tiny_model("llama, tied, grouped")
    engine = Engine.load(save(model, tmp_path), weights="fp32", kv="fp32")
    found = evaluate(engine, Reference.read(engine, CUT))
    with torch.inference_mode():
        sums = [
            functional.cross_entropy(
                model(torch.tensor([window])).logits[0, :-1], torch.tensor(window[1:]), reduction="sum"
            ).item()
            for window in CUT
        ]
    assert found.tokens == 19 + 19 + 9
    assert found.nll == pytest.approx(sum(sums) / found.tokens, rel=1e-4)
    assert found.perplexity == pytest.approx(math.exp(found.nll))


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_divergence_is_that_of_torch(small: Engine, size: float) -> None:
    window = IDS[:40]
    theirs = logits(small, window)
    ours = theirs + size * torch.randn(theirs.shape, generator=torch.Generator().manual_seed(1))
    found = score(ours, theirs, window)
    p, q = theirs[:-1].double().log_softmax(-1), ours[:-1].double().log_softmax(-1)
    expected = functional.kl_div(q, p, reduction="none", log_target=True).sum(-1)
    torch.testing.assert_close(found.kl, expected, rtol=1e-5, atol=1e-9)
    own = functional.nll_loss(q, torch.tensor(window[1:]), reduction="none")
    before = functional.nll_loss(p, torch.tensor(window[1:]), reduction="none")
    torch.testing.assert_close(found.nll_change, own - before, rtol=1e-4, atol=1e-5)
    assert (found.kl > 0).all()
    assert found.agrees.tolist() == (p.argmax(-1) == q.argmax(-1)).tolist()
    assert not found.agrees.all()


def test_a_tiny_divergence_is_not_lost_in_rounding(small: Engine) -> None:
    """Half of sum p d**2 - (sum p d)**2, which is what is left where the difference d is small."""
    window = IDS[:20]
    theirs = logits(small, window)
    ours = theirs + 1e-4 * torch.randn(theirs.shape, generator=torch.Generator().manual_seed(2))
    p, d = theirs[:-1].double().softmax(-1), (theirs - ours)[:-1].double()
    expected = ((p * d**2).sum(-1) - (p * d).sum(-1) ** 2) / 2
    torch.testing.assert_close(score(ours, theirs, window).kl, expected, rtol=0.01, atol=1e-13)


def test_the_reference_does_not_differ_from_itself(small: Engine) -> None:
    found = evaluate(small, Reference.read(small, CUT))
    assert (found.kl, found.kl_worst, found.agreement) == (0.0, 0.0, 1.0)
    assert (found.nll_change, found.nll_change_error) == (0.0, 0.0)


def test_every_row_is_predicted_as_in_a_generation(small: Engine) -> None:
    """The row after a prefix is what the engine chooses from when the prefix is the prompt."""
    rows = logits(small, IDS[:20])
    for length in (1, 7, 20):
        chosen = small.generate(IDS[:length], GREEDY, max_tokens=1, end_tokens=frozenset())
        assert chosen.token_ids == [int(rows[length - 1].argmax())]


def test_the_caches_format_takes_part(small: Engine) -> None:
    kept = Reference.read(small, CUT)
    found = {
        kv: evaluate(beside_cache(small, kv), kept).kl for kv in ("fp32", "fp16", "bf16", "int8", "int4")
    }
    assert found["fp32"] == 0
    assert 0 < found["fp16"] < found["bf16"] < found["int8"] < found["int4"]
    assert small.kv == "fp32"


def test_coarser_caches_move_the_embedded_model_further() -> None:
    engine = embedded("fp32", "fp32")
    cut = windows(engine.text.encode(public_text().text), 64)
    kept = Reference.read(engine, cut)
    whole, eight, four = (evaluate(beside_cache(engine, kv), kept) for kv in ("fp32", "int8", "int4"))
    assert whole.kl == 0 < eight.kl < four.kl / 10
    assert whole.agreement == 1 >= eight.agreement > four.agreement > 0.5
    assert 10 < whole.perplexity < 100
    assert abs(eight.nll_change) < 0.05


def test_progress_is_told_and_stops_by_raising(small: Engine) -> None:
    seen: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 6:
            raise InterruptedError

    kept = Reference.read(small, CUT, tell)
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    with pytest.raises(InterruptedError):
        evaluate(small, kept, tell)
    assert seen[4:] == [(0, 3), (1, 3)]


@pytest.mark.parametrize(
    ("tokens", "size", "sentence"),
    [
        (1, 20, "2 or more, and no more than the text's 50; got 1"),
        (51, 20, "no more than the text's 50; got 51"),
        (40, 1, "2 tokens or more; got 1"),
    ],
)
def test_windows_that_cannot_be_are_a_sentence(tokens: int, size: int, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        windows(IDS, tokens, size)


def test_windows_cover_the_text_once() -> None:
    assert [len(window) for window in CUT] == [20, 20, 10]
    assert [token for window in CUT for token in window] == IDS
    assert [len(window) for window in windows(IDS, 41, 20)] == [20, 20]  # a single token predicts nothing


def test_a_window_beyond_the_context_and_an_unknown_cache_are_sentences(small: Engine) -> None:
    with pytest.raises(RequestError, match="1 to 256 tokens, the model's context; got 257"):
        logits(small, [1] * 257)
    with pytest.raises(FormatError, match="int8-dynamic"):
        beside_cache(small, "int8-dynamic")


def test_logits_that_are_not_finite_are_refused() -> None:
    engine = small_engine()
    engine.model.final_norm_weight[0] = float("nan")
    with pytest.raises(CheckpointError, match="must be finite"):
        logits(engine, IDS[:4])


def test_more_tokens_narrow_the_error(small: Engine) -> None:
    engine = beside_cache(small, "int4")
    errors = []
    for tokens in (20, 200):
        cut = windows(random_ids(200), tokens, 20)
        found = evaluate(engine, Reference.read(small, cut))
        errors.append(found.kl_error)
        assert replace(found).kl_worst >= found.kl
    assert 0 < errors[1] < errors[0]
