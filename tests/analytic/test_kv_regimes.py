"""What engines set aside for a cache: rounded up, worst cases, shared beginnings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.kv_cache import cache_bytes, state_bytes
from core.analytic.kv_regimes import (
    PagedEngine,
    admitted_tokens,
    blocks,
    budget_of_rest,
    budget_of_total,
    contiguous_bytes,
    paged_bytes,
    paged_worst_bytes,
    reused_tokens,
    sharing_bytes,
)
from core.catalog.model import Layer, ModelSpec
from tests.analytic.shapes import GQA, MLP, SHAPES, stacked

shapes = st.sampled_from(list(SHAPES.values()))
tokens = st.integers(1, 500)


def resident(spec: ModelSpec, context: float, batch: int = 1) -> float:
    return float(cache_bytes(spec, "bf16", batch, context)) + batch * state_bytes(spec)


@given(shapes, tokens, st.integers(1, 5))
def test_no_engine_holds_less_than_the_tokens_need(spec: ModelSpec, context: int, batch: int) -> None:
    engine = PagedEngine(max_context=context, batched_tokens=64)
    need = resident(spec, context, batch)
    held = float(paged_bytes(spec, "bf16", batch, context, engine))
    assert need <= held <= float(paged_worst_bytes(spec, "bf16", batch, engine)) + 16 * need
    cells = float(contiguous_bytes(spec, "bf16", batch, batch * context))
    assert cells >= need
    unaware = PagedEngine(window_aware=False)
    assert float(paged_bytes(spec, "bf16", batch, context, unaware)) >= held


@given(tokens, st.integers(1, 64))
def test_blocks_are_whole_and_none_is_idle(count: int, size: int) -> None:
    assert (blocks(count, size) - 1) * size < count <= blocks(count, size) * size


@given(st.integers(1, 400), st.integers(1, 40), st.sampled_from([1, 4, 16]))
def test_a_window_holds_the_blocks_that_it_reaches_into(context: int, window: int, size: int) -> None:
    spec = stacked(Layer(replace(GQA, window=window), MLP), times=1)
    reached = {position // size for position in range(max(context - window, 0), context)}
    held = float(paged_bytes(spec, "bf16", 1, context, PagedEngine(block_tokens=size)))
    assert held == len(reached) * size * 2 * 4 * 16 * 2


@given(st.integers(1, 400), st.integers(0, 400), st.integers(1, 32))
def test_a_hit_leaves_a_token_to_compute(prompt: int, shared: int, size: int) -> None:
    reused = float(reused_tokens(prompt, min(shared, prompt), size))
    assert reused % size == 0
    assert reused <= min(shared, prompt - 1)
    assert reused + size > min(shared, prompt - 1)


@given(shapes, st.integers(1, 8), tokens, st.integers(0, 500))
def test_sharing_saves_whole_blocks_once(spec: ModelSpec, batch: int, context: int, shared: int) -> None:
    apart = float(paged_bytes(spec, "bf16", batch, context))
    together = float(sharing_bytes(spec, "bf16", batch=batch, context=context, shared=shared))
    one = float(paged_bytes(spec, "bf16", 1, context))
    assert one <= together <= apart
    if shared < 16 or batch == 1:
        assert together == apart


def test_a_beginning_that_all_share_is_held_once() -> None:
    spec = SHAPES["dense"]
    token = 4 * 2 * 4 * 16 * 2
    found = float(sharing_bytes(spec, "bf16", batch=10, context=320, shared=170))
    assert found == token * (160 + 10 * 160)


def test_a_window_does_not_hold_what_it_no_longer_sees() -> None:
    windowed = SHAPES["windows"].layers[0].mixer
    assert windowed is not None
    engine = PagedEngine(batched_tokens=64)
    assert admitted_tokens(windowed, np.array([5, 1000]), engine).tolist() == [5, 70]


def test_budgets_are_of_all_or_of_the_rest_and_never_negative() -> None:
    assert float(budget_of_total(80, 0.9, 40)) == pytest.approx(32)
    assert float(budget_of_rest(80, 0.9, 40)) == pytest.approx(36)
    assert float(budget_of_total(80, 0.9, 79)) == 0
    assert float(budget_of_rest(80, 0.9, 90)) == 0
