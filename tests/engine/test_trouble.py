"""What goes wrong while requests run: one sentence, the pages are free again, and the next request works."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from core.engine.batch import Batch, Sequence
from core.engine.engine import CacheKind, Engine
from core.engine.kv_cache import KVPool
from core.engine.records import Request, TokenEvent
from core.engine.sampling import GREEDY
from core.engine.scheduler import Serving
from core.engine.speculation import ModelSpeculator
from core.engine.transformer import Pass
from core.errors import CheckpointError, RequestError
from tests.engine.forward import random_ids
from tests.engine.small import requests, small_engine

pytestmark = pytest.mark.torch

LENGTHS = [(9, 8), (6, 8), (3, 8)]
SERVING = Serving(cache_tokens=64)


def served(engine: Engine) -> list[list[int]]:
    service = engine.serve(requests(LENGTHS), SERVING)
    assert service.steps[0].pages_used == sum(-(-prompt // 4) for prompt, _ in LENGTHS)
    return [generation.token_ids for generation in service.generations]


def interrupt(engine: Engine, monkeypatch: pytest.MonkeyPatch, *, call: int) -> None:
    """Ctrl-C in the middle of the forward pass of one step."""
    run, calls = engine.runner.run, [0]

    def interrupted(batch: Batch, pool: KVPool) -> Pass:
        calls[0] += 1
        values = run(batch, pool)
        if calls[0] == call:
            raise KeyboardInterrupt
        return values

    monkeypatch.setattr(engine.runner, "run", interrupted)


@pytest.mark.parametrize("call", [1, 2, 5])
def test_after_ctrl_c_the_next_request_works(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    engine = small_engine("paged")
    expected = served(small_engine("paged"))
    with monkeypatch.context() as patch:
        interrupt(engine, patch, call=call)
        with pytest.raises(KeyboardInterrupt):
            engine.serve(requests(LENGTHS), SERVING)
    assert [one.token_ids for one in engine.serve(requests(LENGTHS), SERVING).generations] == expected
    assert engine.serve(requests([(3, 1)]), SERVING).steps[0].pages_used == 1


def test_after_ctrl_c_in_a_draft_the_next_request_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(sequences: list[Sequence]) -> None:
        raise KeyboardInterrupt

    engine = small_engine("paged")
    speculator = ModelSpeculator(engine, layers=1)
    plain = engine.generate(random_ids(5), GREEDY, max_tokens=9).token_ids
    with monkeypatch.context() as patch:
        patch.setattr(speculator, "_logits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.generate(random_ids(5), GREEDY, max_tokens=9, speculator=speculator)
    again = engine.generate(random_ids(5), GREEDY, max_tokens=9, speculator=speculator)
    assert again.token_ids == plain


def test_a_caller_whose_callback_fails_leaves_no_pages_behind() -> None:
    engine = small_engine("paged")

    def fail(event: TokenEvent) -> None:
        raise ValueError(event.token_id)

    with pytest.raises(ValueError, match=r"\d"):
        engine.serve([Request(random_ids(30), 5, on_token=fail)], SERVING)
    assert engine.serve(requests([(3, 1)]), SERVING).steps[0].pages_used == 1


def test_weights_that_became_nan_are_said_and_leave_no_pages_behind() -> None:
    engine = small_engine("paged")
    expected = served(small_engine("paged"))
    weight = engine.model.final_norm_weight
    kept = weight.clone()
    weight[3] = torch.nan
    with pytest.raises(CheckpointError, match=r"logits must be finite; step 0 gave others.*weights\.$"):
        engine.serve(requests(LENGTHS), SERVING)
    weight.copy_(kept)
    assert served(engine) == expected


def test_more_sequences_than_memory_wait_for_their_turn() -> None:
    engine = small_engine("paged")
    asked = requests([(7, 5)] * 9)
    service = engine.serve(asked, Serving(max_sequences=9, cache_tokens=24))
    assert all(len(generation.token_ids) == 5 for generation in service.generations)
    assert max(step.num_sequences for step in service.steps) < 9


@pytest.mark.parametrize("cache", ["contiguous", "paged"])
def test_a_request_larger_than_the_cache_is_refused(cache: CacheKind) -> None:
    engine = small_engine(cache)
    with pytest.raises(RequestError, match=r"cache of 24 tokens by itself; one may grow to 25\..*\.$"):
        engine.serve(requests([(5, 3), (20, 5)]), Serving(cache_tokens=24))
    server = engine.server(Serving(cache_tokens=24), 8)
    with pytest.raises(RequestError, match=r"cache of 24 tokens by itself; this one may grow to 25\."):
        server.submit(Request(random_ids(20), 5))


def test_a_context_beyond_the_models_is_refused_or_ends_the_answer() -> None:
    engine = small_engine("paged")
    with pytest.raises(RequestError, match="room in the model's context of 256 tokens; it has 256"):
        engine.serve([Request(random_ids(256), 1)])
    (generation,) = engine.serve([Request(random_ids(250), 50)]).generations
    assert (len(generation.token_ids), generation.stop_reason) == (6, "length")


def test_a_cache_larger_than_the_free_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = small_engine("paged")
    with monkeypatch.context() as patch:
        patch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**20))
        with pytest.raises(RequestError, match=r"The cache must fit into the free memory.*\.$"):
            engine.serve(requests([(5, 5)]), Serving(cache_tokens=10**6))
    assert engine.generate(random_ids(3), GREEDY, max_tokens=2).stop_reason == "length"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Serving(max_sequences=0),
        lambda: Serving(step_tokens=-1),
        lambda: Serving(cache_tokens=0),
        lambda: Engine.load("shape:smollm2-135m", weights="fp32", kv="fp32", cache="paged", page_tokens=0),
    ],
)
def test_sizes_that_cannot_be_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(RequestError, match=r"(must be 1 or more|one token or more); got .*\.$"):
        wrong()
