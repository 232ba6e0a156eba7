"""What chips hold together is the whole, never less; what they keep twice is said and counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analytic.operators import operators
from core.analytic.parallel import (
    ParallelPlan,
    device_operators,
    padded_vocab,
    stage_layers,
    stages,
)
from core.analytic.params import stored_bytes
from core.analytic.shares import kv_heads_on_chip
from core.analytic.table import COLUMNS, Operators
from core.catalog.model import Layer, ModelSpec
from core.catalog.models import model
from tests.analytic.shapes import EXPERTS, GQA, MLP, SHAPES, shape, stacked

FORMATS = {"weights": "bf16", "kv": "bf16"}
shapes = st.sampled_from(list(SHAPES.values()))
plans = st.builds(
    ParallelPlan,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.integers(1, 4),
    dp=st.sampled_from([1, 2, 4]),
    ep=st.sampled_from([1, 2, 4, 8, 16]),
).filter(lambda plan: plan.ep <= plan.tp * plan.dp and (plan.tp % plan.ep == 0 or plan.ep % plan.tp == 0))


def whole(spec: ModelSpec, batch: int, new: int, context: int) -> Operators:
    return operators(spec, batch=batch, new_tokens=new, context=context, weights="bf16", kv="bf16")


def parts(spec: ModelSpec, plan: ParallelPlan, batch: int, new: int, context: int) -> list[Operators]:
    return [
        device_operators(
            spec, plan, stage, batch=batch, new_tokens=new, context=context, weights="bf16", kv="bf16"
        )
        for stage in stages(spec, plan)
    ]


def total(tables: list[Operators], column: str) -> float:
    return sum(float(table.total(column)) for table in tables)


@settings(max_examples=200)
@given(shapes, plans, st.integers(1, 9), st.integers(1, 9), st.integers(0, 30))
def test_chips_together_hold_and_do_at_least_the_whole(
    spec: ModelSpec, plan: ParallelPlan, batch: int, new: int, before: int
) -> None:
    one = whole(spec, batch, new, new + before)
    tables = parts(spec, plan, batch, new, new + before)
    replica = plan.tp * plan.pp
    held = total(tables, "weight_stored_bytes") * plan.tp * plan.dp
    assert held >= stored_bytes(spec, "bf16")
    assert held <= stored_bytes(spec, "bf16") * replica * plan.dp * 1.01
    for column in ("kv_read_bytes", "kv_write_bytes", "state_bytes"):
        assert total(tables, column) * plan.tp >= float(one.total(column)) * (1 - 1e-12), column
    # FLOPs: each replica brings its own tokens, and experts compute those of all.
    assert total(tables, "flops") * plan.tp >= float(one.total("flops")) * (1 - 1e-12)


@given(shapes, st.integers(1, 9), st.integers(1, 9), st.integers(0, 30))
def test_a_plan_of_one_chip_is_the_whole(spec: ModelSpec, batch: int, new: int, before: int) -> None:
    one = whole(spec, batch, new, new + before)
    (alone,) = parts(spec, ParallelPlan(), batch, new, new + before)
    assert alone.names == one.names
    for column in COLUMNS:
        assert np.array_equal(getattr(alone, column), getattr(one, column)), column
    assert float(alone.total("link_bytes")) == 0


@given(shapes, st.integers(1, 4), st.integers(1, 9), st.integers(0, 30))
def test_stages_of_a_pipeline_add_up_exactly(spec: ModelSpec, pp: int, new: int, before: int) -> None:
    one, tables = whole(spec, 3, new, new + before), parts(spec, ParallelPlan(pp=pp), 3, new, new + before)
    for column in ("flops", "kv_read_bytes", "kv_write_bytes", "state_bytes", "weight_streamed_bytes"):
        assert total(tables, column) == pytest.approx(float(one.total(column)), rel=1e-12), column
    copies = 2 * spec.vocab_size * spec.hidden_size if spec.tied_embeddings and pp > 1 else 0
    assert total(tables, "weight_stored_bytes") == stored_bytes(spec, "bf16") + copies
    sends = [table.names.count("stage_send") for table in tables]
    assert sends == [1] * (pp - 1) + [0]


def test_a_dense_model_divides_evenly_but_for_its_norms() -> None:
    spec = SHAPES["dense"]
    one, (split,) = whole(spec, 2, 5, 9), parts(spec, ParallelPlan(tp=4), 2, 5, 9)
    assert float(split.total("flops")) * 4 == float(one.total("flops"))
    assert float(split.total("kv_read_bytes")) * 4 == float(one.total("kv_read_bytes"))
    norms = 9 * 64 * 2
    assert float(split.total("weight_stored_bytes")) * 4 == stored_bytes(spec, "bf16") + 3 * norms


def test_two_all_reduces_a_layer_and_one_where_blocks_are_parallel() -> None:
    (split,) = parts(SHAPES["dense"], ParallelPlan(tp=2), 1, 3, 3)
    reduces = {name: split.repeats[split.index(name)] for name in split.names if name.endswith("_all_reduce")}
    assert reduces == {"embedding_all_reduce": 1, "attention_all_reduce": 4, "mlp_all_reduce": 4}
    sent = split.link_bytes[split.index("attention_all_reduce")]
    assert sent == 4 * (2 * 1 / 2) * 3 * 64 * 2
    (together,) = parts(SHAPES["parallel block"], ParallelPlan(tp=2), 1, 3, 3)
    assert "attention_all_reduce" not in together.names
    assert "mlp_all_reduce" in together.names


def test_more_chips_than_kv_heads_keep_copies() -> None:
    spec = model("llama-3.3-70b")
    per_chip = {
        tp: sum(float(t.total("kv_read_bytes")) for t in parts(spec, ParallelPlan(tp=tp), 1, 1, 1))
        for tp in (1, 8, 16)
    }
    assert per_chip == {1: 327_680, 8: 40_960, 16: 40_960}
    assert kv_heads_on_chip(8, 16) == 1


def test_context_parallelism_removes_the_copies_of_a_latent() -> None:
    spec = SHAPES["latent experts"]
    (copied,) = parts(spec, ParallelPlan(tp=8), 2, 1, 100)
    (shared,) = parts(spec, ParallelPlan(tp=8, cp=8), 2, 1, 100)
    one = whole(spec, 2, 1, 100)
    assert float(copied.total("kv_read_bytes")) == float(one.total("kv_read_bytes"))
    assert float(shared.total("kv_read_bytes")) * 8 == float(one.total("kv_read_bytes"))
    assert shared.total("flops") == copied.total("flops")
    assert {"query_gather", "context_reduce"} <= set(shared.names)


def test_sequence_parallelism_sends_as_much_and_norms_a_share() -> None:
    spec = SHAPES["dense"]
    (whole_tokens,) = parts(spec, ParallelPlan(tp=4), 2, 8, 8)
    (share,) = parts(spec, ParallelPlan(tp=4, sp=4), 2, 8, 8)
    assert float(share.total("link_bytes")) == pytest.approx(float(whole_tokens.total("link_bytes")))
    for name in ("attention_norm", "mlp_residual"):
        assert (
            share.activation_bytes[share.index(name)] * 4
            == whole_tokens.activation_bytes[whole_tokens.index(name)]
        )
    assert share.total("flops") == whole_tokens.total("flops")


def test_groups_know_how_far_they_reach() -> None:
    spec, plan = SHAPES["latent experts"], ParallelPlan(tp=2, pp=2, dp=4, ep=8)
    first, second = parts(spec, plan, 1, 1, 9)
    spreads = {
        name: collective.spread or collective.ranks
        for table in (first, second)
        for name, collective in zip(table.names, table.collectives, strict=True)
        if collective is not None
    }
    assert spreads["attention_all_reduce"] == 2
    assert spreads["stage_send"] == 4
    assert spreads["expert_dispatch"] == 16


def test_experts_spread_over_replicas_see_the_tokens_of_all() -> None:
    spec = stacked(Layer(GQA, EXPERTS), times=2)
    (apart,) = parts(spec, ParallelPlan(dp=4), 1, 1, 10)
    (spread,) = parts(spec, ParallelPlan(dp=4, ep=4), 1, 1, 10)
    row = apart.index("experts_down")
    assert spread.weight_stored_bytes[row + 1] * 4 == apart.weight_stored_bytes[row]
    # Four tokens meet, so more experts are read in all than one token asks for, and fewer than 4 times.
    read = spread.weight_streamed_bytes[spread.index("experts_down")] * 4
    assert apart.weight_streamed_bytes[row] < read < 4 * apart.weight_streamed_bytes[row]
    assert spread.flops[spread.index("experts_down")] == apart.flops[row]
    sent = spread.link_bytes[spread.index("expert_dispatch")]
    assert sent == 2 * (3 / 4) * 4 * 64 * 2  # two layers, three of four experts elsewhere, k = 4


@given(st.integers(1, 200), st.integers(1, 64))
def test_stages_take_every_layer_once_and_differ_by_one_at_most(layers: int, pp: int) -> None:
    found = stage_layers(layers, pp)
    assert sum(found) == layers
    assert max(found) - min(found) <= 1
    assert found[-1] == min(found)


@given(st.integers(1, 300_000), st.integers(2, 64))
def test_a_padded_vocabulary_has_room_for_all(vocab: int, tp: int) -> None:
    rows = padded_vocab(vocab, tp)
    assert vocab <= rows * tp < vocab + 64 + tp


def test_a_sweep_over_a_plan_is_one_table() -> None:
    spec, plan = SHAPES["latent experts"], ParallelPlan(tp=2, dp=2, ep=4)
    batch = np.array([1, 5, 40])
    swept = device_operators(
        spec, plan, stages(spec, plan)[0], batch=batch, new_tokens=1, context=9, weights="bf16", kv="bf16"
    )
    for index, number in enumerate(batch):
        point = parts(spec, plan, int(number), 1, 9)[0]
        for column in COLUMNS:
            values = np.broadcast_to(getattr(swept, column), (len(swept), 3))
            assert values[:, index] == pytest.approx(getattr(point, column), rel=1e-12), column


def test_a_tied_head_on_another_chip_is_a_copy() -> None:
    tied = shape(*[Layer(GQA, MLP)] * 4, tied=True)
    first, last = parts(tied, ParallelPlan(pp=2), 1, 1, 1)
    table = 256 * 64 * 2
    assert first.weight_stored_bytes[first.index("embedding")] == table
    assert last.weight_stored_bytes[last.index("lm_head")] == table
