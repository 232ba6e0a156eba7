"""Paged = contiguous: whatever the page size, wherever the pages lie, whatever is in free ones."""

import itertools
from typing import Any

import pytest
import torch

from core.engine.batch import Batch, Sequence
from core.engine.engine import Engine
from core.engine.kv_cache import KVPool
from core.engine.pages import PageTable
from core.engine.records import Request
from core.engine.sampling import GREEDY
from core.engine.scheduler import Serving
from core.errors import FormatError
from tests.engine.forward import logits, random_ids, relative_error
from tests.engine.small import WINDOW, small_engine

pytestmark = pytest.mark.torch

LENGTH = 21
MODELS: dict[str, dict[str, Any]] = {"all": {}, "window": WINDOW}
#: How far a cache format may move a logit, relative to the largest one.
FORMATS = {"bf16": 0.03, "fp16": 0.01, "int8": 0.06, "int4": 0.6}


def fill_with_nan(pool: KVPool) -> None:
    """Poison every slot: what floating point can hold becomes NaN, bytes become large."""
    for tensor in (tensor for layer in pool.layers for tensor in layer.tensors):
        tensor.fill_(torch.nan if tensor.is_floating_point() else 99)


def scattered(page_tokens: int, tokens: int, seed: int) -> PageTable:
    """Pages in a random order, with free ones between them."""
    count = -(-tokens // page_tokens)
    order = torch.randperm(2 * count, generator=torch.Generator().manual_seed(seed))
    return PageTable(page_tokens, order[:count].tolist())


def paged_logits(engine: Engine, table: PageTable, ids: list[int], pieces: list[int]) -> torch.Tensor:
    pool = engine.reserve(table.page_tokens * (max(table.pages) + 1))
    fill_with_nan(pool)
    sequence = Sequence(list(ids), table=table)
    for count in pieces:
        last = engine.runner.run(Batch.build([(sequence, count)], engine.device), pool).logits
        sequence.num_cached += count
    return last[0].clone()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("page_tokens", [1, 2, 16])
@pytest.mark.parametrize("pieces", [[LENGTH], [8, 13], [20, 1], [17, 3, 1]])
def test_scattered_pages_hold_what_a_contiguous_cache_holds(
    model: dict[str, Any], page_tokens: int, pieces: list[int]
) -> None:
    engine, ids = small_engine(**model), random_ids(LENGTH)
    expected = logits(engine, ids, pieces)[-1]
    found = paged_logits(engine, scattered(page_tokens, LENGTH, seed=page_tokens), ids, pieces)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("kv", FORMATS)
def test_every_cache_format_is_the_same_in_pages_and_near_the_exact_one(kv: str) -> None:
    engine, ids = small_engine(kv=kv), random_ids(LENGTH)
    expected = logits(engine, ids, [18, 2, 1])[-1]
    found = paged_logits(engine, scattered(4, LENGTH, seed=1), ids, [18, 2, 1])
    assert torch.equal(found, expected)
    exact = logits(small_engine(), ids, [18, 2, 1])[-1]
    assert 0 < relative_error(found, exact) < FORMATS[kv]


@pytest.mark.parametrize("kv", ["int8", "int4"])
def test_a_rounded_cache_is_off_by_half_a_step_at_most(kv: str) -> None:
    engine = small_engine(kv=kv)
    shape = engine.spec.layers[0].attention
    (layer, *_) = KVPool(engine.spec, 8, kv, engine.device).layers
    fresh = torch.randn(3, 2 * shape.kv_features, generator=torch.Generator().manual_seed(0))
    layer.write(torch.tensor([6, 0, 3]), fresh)
    read = layer.read(torch.tensor([6, 0, 3]), torch.float32)
    expected = fresh.view(3, 2, shape.num_kv_heads, shape.head_dim).permute(1, 2, 0, 3)
    low, high = expected.amin(dim=-1, keepdim=True), expected.amax(dim=-1, keepdim=True)
    step = torch.maximum(-low, high) / 127 if kv == "int8" else (high - low) / 15
    assert ((read - expected).abs() <= 0.55 * step).all()  # the scale itself is rounded to bf16
    assert torch.equal(layer.read(slice(3, 4), torch.float32), read[:, :, 2:])


def test_generations_are_the_same_with_and_without_pages() -> None:
    ids = random_ids(13)
    texts = [
        small_engine(cache, page_tokens=page_tokens).generate(ids, GREEDY, max_tokens=12).token_ids  # type: ignore[arg-type]
        for cache, page_tokens in (
            ("contiguous", 16),
            ("none", 16),
            ("paged", 1),
            ("paged", 5),
            ("paged", 64),
        )
    ]
    assert all(one == other for one, other in itertools.pairwise(texts))


def test_a_step_reports_the_pages_that_it_holds() -> None:
    generation = small_engine("paged", page_tokens=4).generate(random_ids(7), GREEDY, max_tokens=4)
    assert [step.pages_used for step in generation.steps] == [2, 2, 3, 3]
    assert len({step.pages_used + step.pages_free for step in generation.steps}) == 1


def test_a_second_request_finds_the_pages_of_the_first() -> None:
    engine = small_engine("paged", page_tokens=4)
    prompt = random_ids(11)
    first = engine.generate(prompt, GREEDY, max_tokens=4)
    second = engine.generate(prompt, GREEDY, max_tokens=4)
    assert second.token_ids == first.token_ids
    assert (first.steps[0].new_tokens, first.steps[0].shared_tokens) == (11, 0)
    assert (second.steps[0].new_tokens, second.steps[0].shared_tokens) == (3, 8)
    apart = engine.serve([Request(prompt, 4)], Serving(max_sequences=1, share=False))
    assert (apart.steps[0].new_tokens, apart.steps[0].shared_tokens) == (11, 0)
    engine.measure_steps(8, steps=1)  # writes over the pages
    third = engine.generate(prompt, GREEDY, max_tokens=4)
    assert (third.token_ids, third.steps[0].shared_tokens) == (first.token_ids, 0)


def test_the_same_beginning_is_in_memory_once_while_both_run() -> None:
    engine = small_engine("paged", page_tokens=4)
    common = random_ids(9)
    asked = [Request([*common, 5, 6], 3), Request([*common, 7], 3, arrival=1)]
    service = engine.serve(asked)
    alone = [engine.generate(request.prompt_ids, GREEDY, max_tokens=3).token_ids for request in asked]
    assert [generation.token_ids for generation in service.generations] == alone
    assert service.steps[1].shared_tokens == 8
    assert service.steps[1].pages_used == 3 + 1


def test_an_int4_cache_needs_heads_of_whole_groups() -> None:
    with pytest.raises(FormatError, match="multiple of 32; this model's have 16"):
        small_engine(kv="int4", head_dim=16).generate(random_ids(3), GREEDY, max_tokens=1)
