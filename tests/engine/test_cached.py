"""Headline equivalences: cached = uncached, pieces = whole, together = one by one."""

from itertools import zip_longest

import pytest
import torch

from core.catalog.formats import FORMATS
from core.engine.batch import Batch, Sequence
from core.engine.engine import Engine
from core.engine.sampling import Sampling
from tests.engine.embedded import embedded
from tests.engine.forward import logits, random_ids, region, relative_error

pytestmark = pytest.mark.torch

#: How far two orders of summing may move a logit, relative to the largest one. With int8-dynamic the
#: last bit of an attention sum can tip an activation over to the next of its 255 values.
ROUNDING = {"fp32": 1e-4, "fp16": 5e-3, "bf16": 3e-2, "int8": 3e-2, "int4": 3e-2, "int8-dynamic": 0.2}
#: fp8 is bf16 to all that is looked at here, and slow on a CPU.
WEIGHTS = [record.id for record in FORMATS.values() if "weights" in record.uses and record.id in ROUNDING]
PROMPT = "Count from one to ten in words."


@pytest.mark.parametrize("weights", WEIGHTS)
def test_cached_and_uncached_choose_the_same_tokens(weights: str) -> None:
    kv = FORMATS[weights].activations
    cached, uncached = embedded(weights, kv), embedded(weights, kv, "none")
    prompt = cached.encode(PROMPT, raw=False)
    first = cached.generate(prompt, Sampling(), max_tokens=8)
    second = uncached.generate(prompt, Sampling(), max_tokens=8)
    assert [step.new_tokens for step in first.steps[1:]] == [1] * (len(first.steps) - 1)
    assert second.steps[-1].new_tokens == len(prompt) + len(second.steps) - 1
    for index, (one, other) in enumerate(zip_longest(first.token_ids, second.token_ids)):
        if one != other:  # only a tie within rounding may fall either way, and then the texts part
            assert_tied(cached, prompt + first.token_ids[:index], one, other, ROUNDING[weights])
            return


def assert_tied(engine: Engine, ids: list[int], one: int, other: int, tolerance: float) -> None:
    (row,) = logits(engine, ids, [len(ids)])
    assert abs(float(row[one] - row[other])) < tolerance * float(row.abs().max())


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_prompt_in_pieces_is_the_whole_prompt(weights: str) -> None:
    engine = embedded(weights, FORMATS[weights].activations)
    ids = random_ids(150, vocab=engine.spec.vocab_size)
    (whole,) = logits(engine, ids, [150])
    pieces = logits(engine, ids, [70, 1, 1, 50, 28])
    assert relative_error(pieces[-1], whole) < ROUNDING[weights]


def test_a_row_of_an_int8_dynamic_product_does_not_depend_on_its_neighbours() -> None:
    engine = embedded("int8-dynamic", "fp32")
    rows = torch.randn(7, 576, generator=torch.Generator().manual_seed(1))
    kernel = engine.model.blocks[0].qkv_linear
    together = kernel(rows)
    alone = torch.cat([kernel(row.unsqueeze(0)) for row in rows])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("lengths", [(1, 1), (9, 1), (4, 11)])
def test_sequences_in_one_batch_are_each_as_if_alone(lengths: tuple[int, int]) -> None:
    engine = embedded()
    pool = engine.reserve(64)
    sequences = [
        Sequence(random_ids(length, seed=length), table=region(20 * index))
        for index, length in enumerate(lengths)
    ]
    batch = Batch.build([(sequence, sequence.num_pending) for sequence in sequences], engine.device)
    together = engine.runner.run(batch, pool).logits.clone()
    for row, sequence in zip(together, sequences, strict=True):
        (alone,) = logits(engine, sequence.token_ids, [len(sequence.token_ids)], first_slot=40)
        assert relative_error(row, alone) < 1e-5


def test_slots_that_belong_to_nobody_are_never_read() -> None:
    engine = embedded()
    ids = random_ids(10)
    expected = logits(engine, ids, [6, 4], first_slot=5)
    pool = engine.reserve(15)
    cells = [tensor for layer in pool.layers for tensor in layer.tensors]
    for tensor in cells:
        tensor.fill_(torch.nan)
    assert torch.equal(torch.stack(logits(engine, ids, [6, 4], first_slot=5)), torch.stack(expected))
    for tensor in cells:
        tensor.zero_()


def test_the_cache_may_have_another_format_than_the_activations() -> None:
    ids = random_ids(30)
    exact = logits(embedded("fp32", "fp32"), ids, [29, 1])[-1]
    coarse = logits(embedded("fp32", "bf16"), ids, [29, 1])[-1]
    assert 0 < relative_error(coarse, exact) < ROUNDING["bf16"]
