"""Every way of running steps gives what the operators give one by one, whatever changes between steps."""

import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from core.engine import linear
from core.engine.attention import GatheredAttention
from core.engine.batch import Batch, Sequence
from core.engine.cache_memory import CacheMemory
from core.engine.compiled_runner import APART, PRODUCTS, CompiledRunner
from core.engine.engine import Engine
from core.engine.gpu.graph_runner import GraphRunner, Shape, bucket, fits
from core.engine.gpu.row_attention import BatchedAttention, gathered_rows
from core.engine.kv_cache import KVPool
from core.engine.pages import PageTable
from core.engine.runner import EagerRunner
from core.engine.runners import choose_runner, require_runner
from core.engine.scheduler import Serving
from core.engine.speculation import NGramSpeculator
from core.engine.step import Stepper
from core.errors import RequestError
from tests.engine.forward import random_ids, relative_error
from tests.engine.small import WINDOW, requests, small_engine

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++"))), reason="No C++ compiler is installed here."
)
when_slow_tests_run = pytest.mark.skipif(
    "LLM_LAB_SLOW_TESTS" not in os.environ,
    reason="torch's whole compiler takes half a minute; set LLM_LAB_SLOW_TESTS=1 to run it.",
)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="This machine has no CUDA device.")


# --- Compiled -------------------------------------------------------------------------------------


def compiled_and_eager(engine: Engine, runner: CompiledRunner, rows: list[tuple[int, int]]) -> None:
    """The same steps by both: so many new tokens of two sequences in scattered pages, step by step."""
    eager, pool = EagerRunner(engine.model), engine.reserve(256)
    sequences = [
        Sequence(random_ids(60, seed=index), table=PageTable(4, list(range(30 + index, index, -2))))
        for index in range(2)
    ]
    for counts in rows:
        plan = [(sequence, count) for sequence, count in zip(sequences, counts, strict=True) if count]
        batch = Batch.build(plan, engine.device)
        expected = eager.run(batch, pool).logits.clone()
        found = runner.run(batch, pool)
        assert relative_error(found.logits, expected) < 1e-5
        assert found.num_bytes > 0
        for sequence, count in plan:
            sequence.num_cached += count


STEPS = [(20, 0), (0, 7), (1, 0), (1, 1), (0, 1), (3, 5), (1, 0)]


@pytest.mark.parametrize("apart", [APART, APART | PRODUCTS], ids=["products inside", "products apart"])
def test_traced_pieces_are_eager_at_changing_contexts_and_rows(
    apart: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the last part of the compiler, which takes a while: tracing, guards, open numbers of rows."""
    monkeypatch.setattr(linear, "_fastest", lambda _, builds, *__: builds[0])  # torch's plain product
    engine = small_engine(**WINDOW)
    compiled_and_eager(engine, CompiledRunner(engine.model, apart, "aot_eager"), STEPS)


@needs_compiler
@when_slow_tests_run
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch gives up
def test_compiled_is_eager_at_changing_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole compiler, which takes seconds for each piece: two pieces, of single rows, in this process."""
    monkeypatch.setattr(linear, "_fastest", lambda _, builds, *__: builds[0])
    engine = small_engine(num_hidden_layers=1)
    steps = [(1, 0)] * 3 + [(0, 1)] * 5 + [(1, 0)] * 2
    with torch._inductor.config.patch(compile_threads=1):
        compiled_and_eager(engine, CompiledRunner(engine.model, APART), steps)


def test_pieces_are_cut_at_what_the_compiler_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiling: the same operators in the same order."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    engine = small_engine()
    runner = CompiledRunner(engine.model, APART)
    pieces = [[name for name, _ in operators] for operators, is_apart in runner._pieces if not is_apart]
    assert pieces[0] == ["attention_norm", "qkv", "rope"]
    assert pieces[1][:3] == ["output", "attention_residual", "mlp_norm"]
    assert pieces[1][-4:] == ["mlp_residual", "attention_norm", "qkv", "rope"]
    compiled_and_eager(engine, runner, STEPS)


# --- Graphs ---------------------------------------------------------------------------------------


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Stands in for a CUDA graph: it writes down every kernel with its very tensors and Python numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out

    def replay(self) -> None:
        """Call them again; results go where they went before."""
        with torch.inference_mode():
            for func, args, kwargs, out in self.calls:
                for old, new in zip(tree_leaves(out), tree_leaves(func(*args, **kwargs)), strict=True):
                    if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


def recorded(work: Callable[[], None]) -> Callable[[], None]:
    recorder = Recorder()
    with recorder:
        work()
    return recorder.replay


def graphed(engine: Engine) -> GraphRunner:
    """Let an engine run its steps by recordings, with attention as a GPU has it."""
    for block in engine.model.blocks:
        block.attend = BatchedAttention(gathered_rows, GatheredAttention())
    runner = GraphRunner(EagerRunner(engine.model), recorded)
    engine.runner = runner
    engine.memory = CacheMemory(engine.spec, engine.kv, engine.device, scratch=1)
    engine.stepper = Stepper(engine.spec, runner, engine._step_bytes(), engine.device)
    return runner


LENGTHS = [(9, 12), (3, 20), (17, 5), (1, 16), (30, 9)]


@pytest.mark.parametrize("cache", ["paged", "contiguous"])
@pytest.mark.parametrize("model", [{}, WINDOW], ids=["all", "window"])
@pytest.mark.parametrize("kv", ["fp32", "int8", "int4"])
def test_replays_write_what_single_operators_write(cache: Any, model: dict[str, Any], kv: str) -> None:
    """A handful of recordings serves every context, page table and number of sequences."""
    engine = small_engine(cache, kv=kv, **model)
    expected = engine.serve(requests(LENGTHS), Serving(max_sequences=3)).generations
    runner = graphed(engine)
    found = engine.serve(requests(LENGTHS), Serving(max_sequences=3))
    assert [one.token_ids for one in found.generations] == [one.token_ids for one in expected]
    decodes = [step for step in found.steps if step.kind == "decode"]
    assert len(decodes) >= 2 * len(runner.graphs), "at least every second step is a second replay"
    assert {shape.rows for shape in runner.graphs} == {1, 2, 4}


def test_guesses_are_verified_by_a_graph_as_well() -> None:
    engine = small_engine("paged")
    serving = Serving(max_sequences=2, speculator=NGramSpeculator(3))
    expected = engine.serve(requests(LENGTHS), Serving(max_sequences=2)).generations
    runner = graphed(engine)
    found = engine.serve(requests(LENGTHS), serving).generations
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
    assert max(shape.rows for shape in runner.graphs) > 2


def logits(runner: GraphRunner, pool: KVPool, sequences: list[Sequence]) -> torch.Tensor:
    batch = Batch.build([(sequence, 1) for sequence in sequences], CPU)
    return runner.run(batch, pool).logits.clone()


def test_padding_touches_its_own_slot_alone() -> None:
    engine = small_engine("paged")
    runner, pool = graphed(engine), KVPool(engine.spec, 41, "fp32", CPU)
    for layer in pool.layers:
        layer.tensors[0].fill_(torch.nan)
    tables = [PageTable(4, pages) for pages in ([3, 1], [0, 5], [9, 7])]
    sequences = [Sequence(random_ids(6, seed=index), 0, table) for index, table in enumerate(tables)]
    for sequence in sequences:
        EagerRunner(engine.model).run(Batch.build([(sequence, 5)], CPU), pool)
        sequence.num_cached = 5
    before = [layer.tensors[0].clone() for layer in pool.layers]
    together = logits(runner, pool, sequences)  # 3 rows and one of padding
    written = {table.slots(5, 6)[0] for table in tables} | {40}
    for layer, old in zip(pool.layers, before, strict=True):
        changed = (layer.tensors[0].nan_to_num(7) != old.nan_to_num(7)).any(dim=1).nonzero().flatten()
        assert set(changed.tolist()) == written
    assert set(runner.graphs) == {Shape(rows, 2, 4) for rows in (1, 2, 4)}
    alone = torch.cat([logits(runner, pool, [sequence]) for sequence in sequences])
    assert relative_error(alone, together) < 1e-5
    assert len(runner.graphs) == 3, "the smaller ones were there already"


def test_a_new_pool_has_new_graphs() -> None:
    engine = small_engine()
    runner = graphed(engine)
    sequence = Sequence(random_ids(1))
    old = logits(runner, KVPool(engine.spec, 9, "fp32", CPU), [sequence])
    (before,) = runner.graphs.values()
    new = logits(runner, KVPool(engine.spec, 9, "fp32", CPU), [sequence])
    (after,) = runner.graphs.values()
    assert before is not after
    assert torch.equal(old, new)


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (32, 32)])
def test_rows_are_rounded_up_to_a_bucket(rows: int, size: int) -> None:
    assert bucket(rows) == size


def test_what_is_long_or_wants_few_logits_is_not_for_a_graph() -> None:
    def plan(*counts: int) -> Batch:
        return Batch.build([(Sequence([1] * count), count) for count in counts], CPU)

    assert fits(plan(*[1] * 32))
    assert not fits(plan(*[1] * 33))
    assert not fits(plan(2)), "one of two rows has its logits wanted"
    guessing = Sequence([1] * 4, 1, num_drafted=2)
    assert fits(Batch.build([(guessing, 3)], CPU))


@pytest.mark.parametrize("scratch", [0, 1])
def test_the_scratch_slot_is_nobody_elses(scratch: int) -> None:
    engine = small_engine()
    memory = CacheMemory(engine.spec, "fp32", CPU, scratch)
    assert memory.reserve(256).num_slots == 256 + scratch
    assert memory.slots_for(100) == 256
    pool, pages = memory.paged(64, 4)
    assert pages.num_pages * pages.page_tokens + scratch == pool.num_slots


# --- Choosing -------------------------------------------------------------------------------------


def test_a_way_that_the_device_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match=r"graphs replays CUDA graphs.*the device is cpu\. Choose eager"):
        require_runner("graphs", CPU)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(RequestError, match=r"compiled needs a C\+\+ compiler on a CPU; none of g\+\+"):
        require_runner("compiled", CPU)
    bad: Any = "fast"
    with pytest.raises(RequestError, match="The runner must be one of eager, compiled, graphs; got 'fast'"):
        require_runner(bad, CPU)


@pytest.mark.skipif(torch.cuda.is_available(), reason="This machine has a CUDA device.")
@pytest.mark.parametrize("mode", ["eager", "graphs"])
def test_a_device_that_is_not_here_is_refused_before_a_model_is_read(mode: Any) -> None:
    with pytest.raises(RequestError, match="The device cuda must exist here"):
        Engine.load("no such model", weights="bf16", kv="bf16", device="cuda", runner=mode)


def test_graphs_do_not_follow_a_router(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = small_engine()
    operators = engine.model.operators()
    monkeypatch.setattr(type(engine.model), "operators", lambda _: [*operators, ("router", operators[0][1])])
    with pytest.raises(RequestError, match="in a mixture of experts a router decides them on the way"):
        choose_runner("graphs", engine.model, torch.device("cuda"))


@needs_cuda
@pytest.mark.parametrize("mode", ["compiled", "graphs"])
@pytest.mark.parametrize("kv", ["bf16", "int8"])
def test_every_way_is_eager_on_a_gpu(mode: Any, kv: str) -> None:
    """The embedded model, several sequences: the tokens of single operators, but for ties."""
    engines = {
        name: Engine.load("smollm2-135m", weights="fp32", kv="fp32" if kv == "bf16" else kv, cache="paged",
                          device="cuda", runner=name)
        for name in ("eager", mode)
    }  # fmt: skip
    found = [
        [one.token_ids for one in engine.serve(requests(LENGTHS), Serving(max_sequences=3)).generations]
        for engine in engines.values()
    ]
    assert found[0] == found[1]
