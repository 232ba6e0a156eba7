"""A step in one call of C++ is the step of the operators, whoever shares it and wherever the cache lies."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from core.catalog.model import ModelSpec
from core.engine.batch import Batch, Sequence
from core.engine.engine import Engine
from core.engine.files.checkpoint import Checkpoint
from core.engine.files.text import ByteText
from core.engine.files.weight import Weight
from core.engine.kv_cache import KVPool
from core.engine.native import binding as native
from core.engine.native.step import NativeStep, native_step
from core.engine.pages import PageTable
from core.engine.quantise import groups4, groups8, rows8
from core.engine.runner import EagerRunner, NativeRunner
from core.engine.transformer import Pass
from tests.engine.forward import random_ids, relative_error
from tests.engine.small import WINDOW, SmallWeights, small_engine, small_spec
from tests.engine.test_paged import fill_with_nan, scattered

pytestmark = pytest.mark.torch

if native.kernels() is None:
    pytest.skip("A step in C++ needs a C++ compiler.", allow_module_level=True)

LENGTH = 23
MODELS: dict[str, dict[str, Any]] = {
    "llama": {},
    "window": WINDOW,
    "biases": {"model_type": "qwen2"},
    "norms of heads": {"model_type": "qwen3"},
}
CACHES = ["fp32", "bf16", "fp16", "int8", "int4"]
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
STORED: dict[str, Callable[[Tensor], Tensor]] = {
    "bf16": lambda weight: weight.bfloat16().float(),
    "int8": lambda weight: rows8(weight, torch.bfloat16).dense(),
    "int8-g32": lambda weight: groups8(weight).dense(),
    "int8-dynamic": lambda weight: rows8(weight, torch.float32).dense(),
    "int4": lambda weight: groups4(weight).dense(),
}
#: How far rounding the inputs of products may move a logit, relative to the largest; and bf16 embeddings.
ROUNDING = {"bf16": 0.01, "int8": 0.01, "int8-g32": 0.01, "int8-dynamic": 0.06, "int4": 0.02}


class StoredWeights(SmallWeights):
    """The numbers that an engine in another format keeps."""

    def __init__(self, spec: ModelSpec, fmt: str) -> None:
        super().__init__(spec)
        self._fmt = fmt

    def weight(self, name: str) -> Weight:
        whole = super().weight(name)
        if whole.data.dim() == 1:
            return whole
        words = self._fmt == "int4" and ("embed" in name or "head" in name)  # int8 in an int4 model
        return Weight(STORED["int8" if words else self._fmt](whole.data))


def stored_engine(fmt: str, **changes: object) -> Engine:
    """An engine that computes in fp32 with the weights that another one keeps in ``fmt``."""
    spec = small_spec(**changes)
    checkpoint = Checkpoint(spec, StoredWeights(spec, fmt), ByteText(spec.vocab_size), frozenset())
    return Engine(checkpoint, weights="fp32", kv="fp32", cache="contiguous", device=torch.device("cpu"))


def step_of(engine: Engine) -> NativeStep:
    assert isinstance(engine.runner, NativeRunner)
    return engine.runner.step


def pieces_logits(engine: Engine, pool: KVPool, table: PageTable, pieces: list[int]) -> list[Tensor]:
    """The last logits after each piece of one sequence."""
    sequence, rows = Sequence(random_ids(LENGTH), table=table), []
    for count in pieces:
        rows.append(
            engine.runner.run(Batch.build([(sequence, count)], engine.device), pool).logits[0].float()
        )
        sequence.num_cached += count
    return rows


@every_model
@pytest.mark.parametrize("fmt", STORED)
@pytest.mark.parametrize("pieces", [[16, 7], [15, 6, 1, 1], [7, 8, 8]])
def test_it_computes_what_the_operators_compute(model: dict[str, Any], fmt: str, pieces: list[int]) -> None:
    engine, oracle = small_engine(weights=fmt, **model), stored_engine(fmt, **model)
    assert step_of(engine).most_rows >= max(pieces), "all of it runs in C++"
    assert isinstance(oracle.runner, EagerRunner)
    table = PageTable(64, [0])
    found = pieces_logits(engine, engine.reserve(64), table, pieces)
    expected = pieces_logits(oracle, oracle.reserve(64), table, pieces)
    for ours, theirs in zip(found, expected, strict=True):
        assert relative_error(ours, theirs) < ROUNDING[fmt]


@every_model
@pytest.mark.parametrize("kv", CACHES)
@pytest.mark.parametrize("page_tokens", [1, 16])
def test_pages_may_lie_anywhere_and_free_ones_are_not_read(
    model: dict[str, Any], kv: str, page_tokens: int
) -> None:
    engine, pieces = small_engine(weights="int8", kv=kv, **model), [9, 8, 5, 1]
    expected = pieces_logits(engine, engine.reserve(64), PageTable(64, [0]), pieces)
    table = scattered(page_tokens, LENGTH, seed=3)
    pool = engine.reserve(page_tokens * (max(table.pages) + 1))
    fill_with_nan(pool)
    assert torch.equal(pieces_logits(engine, pool, table, pieces)[-1], expected[-1])


@pytest.mark.parametrize("kv", CACHES)
@torch.inference_mode()
def test_it_keeps_in_the_cache_what_the_operators_keep(kv: str) -> None:
    """Up to one step of rounding; only the first layer has its keys and values from the same numbers."""
    engine, pools = small_engine(weights="bf16", kv=kv, num_hidden_layers=1), []
    for runner in (step_of(engine), EagerRunner(engine.model)):
        pool = KVPool(engine.spec, 8, kv, engine.device)
        runner.run(Batch.build([(Sequence(random_ids(5)), 5)], engine.device), pool)
        pools.append(pool)
    ours, theirs = (pool.layers[0].read(slice(0, 5), torch.float32) for pool in pools)
    assert relative_error(ours, theirs) < {"int4": 0.14, "int8": 0.015}.get(kv, 0.008)


@every_model
@pytest.mark.parametrize(
    ("fmt", "kv"), [("int4", "bf16"), ("bf16", "int8"), ("int8-g32", "fp32"), ("int8-dynamic", "int4")]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sequence_does_not_notice_who_shares_its_step(
    model: dict[str, Any], fmt: str, kv: str, threads: int
) -> None:
    """Prompts, pieces of prompts and single tokens in one step, bit for bit as each of them alone."""
    engine = small_engine(weights=fmt, kv=kv, **model)
    pool, lengths, taken = engine.reserve(5 * 32), (7, 12, 1, 23, 16), (7, 1, 1, 2, 5)
    torch.set_num_threads(threads)
    try:

        def sequences() -> list[Sequence]:
            tables = [PageTable(32, [index]) for index in range(len(lengths))]
            made = [Sequence(random_ids(n, seed=n), table=t) for n, t in zip(lengths, tables, strict=True)]
            for sequence, count in zip(made, taken, strict=True):
                if before := len(sequence.token_ids) - count:
                    engine.runner.run(Batch.build([(sequence, before)], engine.device), pool)
                    sequence.num_cached = before
            return made

        plan = list(zip(sequences(), taken, strict=True))
        together = engine.runner.run(Batch.build(plan, engine.device), pool).logits.clone()
        for row, one in zip(together, zip(sequences(), taken, strict=True), strict=True):
            alone = engine.runner.run(Batch.build([one], engine.device), pool).logits[0]
            assert torch.equal(alone, row)
    finally:
        torch.set_num_threads(1)


def test_its_operators_are_those_of_the_model_and_each_is_timed() -> None:
    engine = small_engine(weights="int8", kv="bf16", model_type="qwen3")
    step, pool = step_of(engine), engine.reserve(16)
    assert step.operators == [name for name, _ in engine.model.operators()][1:]
    values = Pass(Batch.build([(Sequence(random_ids(5)), 5)], engine.device), pool)
    engine.model.embedding(values)
    timed = step.timed(values)
    assert [name for name, _ in timed] == step.operators
    assert all(0 < seconds < 1 for _, seconds in timed)
    plain = engine.runner.run(values.batch, pool).logits
    assert torch.equal(values.logits, plain)


def test_many_rows_are_left_to_the_operators() -> None:
    engine = small_engine(weights="int8", kv="bf16")
    few, many = (Batch.build([(Sequence(random_ids(n)), n)], engine.device) for n in (3, 200))
    assert step_of(engine).takes(few)
    assert not step_of(engine).takes(many)


def test_a_model_without_such_kernels_has_no_step() -> None:
    assert native_step(small_engine(weights="fp32").model) is None
    assert native_step(small_engine(weights="int8", intermediate_size=72).model) is None
