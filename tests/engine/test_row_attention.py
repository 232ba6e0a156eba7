"""Attention of a whole batch by a block table: the plain way, our Triton kernel, torch's flex_attention."""

import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from core.engine.attention import GatheredAttention, make_attention
from core.engine.batch import Batch, Sequence
from core.engine.gpu import row_attention
from core.engine.gpu.block_table import FEW_ROWS, BlockTable, Seen
from core.engine.gpu.row_attention import BatchedAttention, FlexRows, gathered_rows
from core.engine.kv_cache import make_layer
from core.engine.linear import DTYPES
from core.engine.pages import PageTable
from core.errors import RequestError
from tests.engine.row_cases import CASES, TOLERANCES, Case, error, queries, scattered

pytestmark = pytest.mark.torch

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed here."
)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="This machine has no CUDA device.")


def one_by_one(case: Case) -> torch.Tensor:
    """Each query alone in fp64, over the slots that its table names."""
    layer, seen = scattered(case, CPU)
    asked = iter(queries(case, CPU).double())
    rows = []
    for one in seen:
        for length in range(one.context - one.new_tokens + 1, one.context + 1):
            first = max(0, length - case.window) if case.window else 0
            where = torch.tensor(one.table.slots(first, length))
            keys, values = layer.read(where, torch.float32).double().unsqueeze(1).unbind()
            folded = next(asked).view(1, case.shape.num_kv_heads, -1, case.shape.head_dim)
            rows.append(torch.nn.functional.scaled_dot_product_attention(folded, keys, values).flatten())
    return torch.stack(rows)


@pytest.mark.parametrize("name", CASES)
def test_the_plain_way_is_that_of_each_query_alone(name: str) -> None:
    case = CASES[name]
    layer, seen = scattered(case, CPU)
    found = gathered_rows(queries(case, CPU), layer, case.shape, BlockTable.build(seen, CPU))
    exact = one_by_one(case)
    assert found.dtype == DTYPES[case.activations]
    assert (found.double() - exact).abs().max() <= TOLERANCES[case.activations] * exact.abs().max()


def test_an_int4_cache_is_read_the_plain_way() -> None:
    case = Case("int4", "bf16", 2)
    layer, seen = scattered(case, CPU)
    found = gathered_rows(queries(case, CPU), layer, case.shape, BlockTable.build(seen, CPU))
    assert (found.double() - one_by_one(case)).abs().max() <= 0.05


@functools.cache
def interpreted() -> dict[str, float]:
    """The kernel's errors in Triton's interpreter, in a process that has it switched on."""
    command = [sys.executable, "-m", "tests.engine.row_cases"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    errors: dict[str, float] = json.loads(done.stdout)
    return errors


@needs_triton
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_plain_way_in_the_interpreter(name: str) -> None:
    assert interpreted()[name] <= TOLERANCES[CASES[name].activations]


@needs_cuda
@torch.inference_mode()
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_plain_way_on_a_gpu(name: str) -> None:
    ours: Any = importlib.import_module("core.engine.gpu.triton_attention")
    assert error(CASES[name], ours.triton_rows, CUDA) <= TOLERANCES[CASES[name].activations]


@needs_triton
@pytest.mark.parametrize("cells", ["bf16", "i8"])
def test_the_kernel_compiles_for_a_gpu_that_is_not_here(cells: str) -> None:
    """Down to machine code, for which Triton brings the assembler."""
    triton, backends, ours = (
        importlib.import_module(name)
        for name in ("triton", "triton.backends.compiler", "core.engine.gpu.triton_attention")
    )
    constants: dict[str, Any] = {
        **{"HEADS": 16, "GROUP": 4, "SIZE": 64, "PAGE": 16, "WINDOW": 0, "IS_BYTE": cells == "i8"},
        **{"FACTORS": triton.language.bfloat16, "ROWS": 16, "COLUMNS": 64, "TILE": 64},
    }
    pointers = {"queries": "*bf16", "cells": f"*{cells}", "scales": "*bf16", "blocks": "*i64"}
    results = dict.fromkeys(("sums", "highs", "totals"), "*fp32")
    numbers = {"factor": "fp32", "query_stride": "i32", "block_stride": "i32"}
    signature = pointers | results | numbers | dict.fromkeys(constants, "constexpr")
    source = triton.compiler.ASTSource(ours._attend_part, signature, constants)
    compiled = triton.compile(source, target=backends.GPUTarget("cuda", 90, 32))
    assert compiled.asm["cubin"]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", ["fp32 cache, pages of 2", "a window within a page", "guesses to verify"])
def test_flex_attention_is_the_plain_way(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Not compiled here, which takes seconds; it is the same mask and the same numbers."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    assert error(CASES[name], FlexRows(), CPU) <= 1e-5


def test_a_window_of_unseen_tokens_is_not_read() -> None:
    """What stands in place of a token that a query does not see is its own."""
    blocks = BlockTable.build([Seen(PageTable(2, [7, 3]), 3, 1)], CPU)
    slots, seen = blocks.slots(window=2)
    assert slots.tolist() == [[6, 15, 6, 6]]
    assert seen.tolist() == [[False, True, True, False]]


def test_pages_are_padded_to_a_power_of_two_and_a_contiguous_cache_has_pages_too() -> None:
    short, long = Seen(PageTable(2, [5]), 1, 1), Seen(PageTable(2, [9, 1, 8]), 6, 2)
    assert BlockTable.build([short, long], CPU).cells.tolist() == [
        [1, 10, 0, 0, 0],
        [5, 18, 2, 16, 0],
        [6, 18, 2, 16, 0],
    ]
    whole = BlockTable.build([Seen(PageTable(1000, [2]), 33, 1)], CPU)
    assert (whole.page_tokens, whole.cells.tolist()) == (16, [[33, 2000, 2016, 2032, 0]])


@torch.inference_mode()
def test_long_pieces_and_single_tokens_share_a_step() -> None:
    case = Case("fp32", "fp32", 2, contexts=(9, 60, 20), window=12)
    layer, seen = scattered(case, CPU)
    new_tokens = [1, FEW_ROWS + 14, 3]
    plan = [
        (Sequence([0] * one.context, one.context - count, one.table), count)
        for one, count in zip(seen, new_tokens, strict=True)
    ]
    batch = Batch.build(plan, CPU)
    asked = torch.randn(sum(new_tokens), case.shape.query_features)
    expected = GatheredAttention()(asked, layer, case.shape, batch)
    found = BatchedAttention(gathered_rows, GatheredAttention())(asked, layer, case.shape, batch)
    assert (found - expected).abs().max() <= 1e-5


def test_a_gpu_gets_our_kernel_where_it_knows_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    gathers = make_attention(CUDA, "int4")
    assert isinstance(gathers, BatchedAttention)
    assert gathers._rows is row_attention.gathered_rows
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    without = make_attention(CUDA, "bf16")
    assert isinstance(without, BatchedAttention)
    assert without._rows is row_attention.gathered_rows
    assert isinstance(make_attention(CPU, "bf16"), GatheredAttention)


@needs_triton
def test_our_kernel_is_what_a_gpu_gets() -> None:
    chosen = make_attention(CUDA, "int8")
    assert isinstance(chosen, BatchedAttention)
    assert chosen._rows.__name__ == "triton_rows"  # type: ignore[attr-defined]


def test_a_way_that_a_device_or_a_cache_lacks_is_refused() -> None:
    with pytest.raises(RequestError, match=r"On a CPU attention has one way, auto; got 'flex'"):
        make_attention(CPU, "bf16", "flex")
    with pytest.raises(RequestError, match=r"needs Triton and a cache in .*; the cache is int4"):
        make_attention(CUDA, "int4", "triton")


def test_slots_are_whatever_the_layer_has() -> None:
    """A format without scales and one with them read the same slots."""
    layer = make_layer(8, CASES["fp16"].shape, "bf16", CPU)
    layer.write(torch.tensor([3]), torch.ones(1, 128))
    blocks = BlockTable.build([Seen(PageTable(1, [3]), 1, 1)], CPU)
    found = gathered_rows(torch.ones(1, 128), layer, CASES["fp16"].shape, blocks)
    assert torch.equal(found, torch.ones(1, 128))
