"""Every kind of layer: its work and its bytes against counts made another way."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.analytic.experts import distinct_experts
from core.analytic.forward_pass import LatentForm
from core.analytic.kv_cache import cache_bytes, index_bytes, state_bytes
from core.analytic.operators import operators
from core.analytic.params import stored_bytes
from core.analytic.table import Operators
from core.catalog.model import Layer, ModelSpec
from core.catalog.models import catalogue
from tests.analytic.shapes import EXPERTS, GQA, HIDDEN, MLA, MLP, SHAPES, shape, stacked

shapes = st.sampled_from(list(SHAPES.values()))
Array = NDArray[np.float64]


def table_of(
    spec: ModelSpec, batch: int, new: int, context: int, latent: LatentForm = "absorbed"
) -> Operators:
    return operators(
        spec, batch=batch, new_tokens=new, context=context, weights="bf16", kv="bf16", latent=latent
    )


def by_name(table: Operators, column: str) -> dict[str, float]:
    return {name: float(value) for name, value in table.by_name(getattr(table, column)).items()}


# --- Laws that hold for all of them ---------------------------------------------------------------


@given(shapes, st.sampled_from(["bf16", "int4", "fp8-block", "q4_k", "mxfp4", "nf4"]))
def test_what_operators_keep_is_the_whole_model(spec: ModelSpec, weights: str) -> None:
    table = operators(spec, batch=1, new_tokens=1, context=1, weights=weights, kv="bf16")
    assert int(table.total("weight_stored_bytes")) == stored_bytes(spec, weights)
    lookup = table.index("embedding")
    others = [row for row in range(len(table)) if row != lookup]
    head = table.index("lm_head") if spec.tied_embeddings else lookup
    kept = [row for row in others if row != head]
    assert (table.weight_streamed_bytes[kept] <= table.weight_stored_bytes[kept]).all()


def test_every_model_of_the_catalogue_is_kept_whole() -> None:
    for spec in catalogue().values():
        for weights in ("bf16", "fp8-block", "q6_k"):
            table = operators(spec, batch=1, new_tokens=1, context=1, weights=weights, kv="bf16")
            towers = 2 * sum(tower.parameters or 0 for tower in spec.towers)
            kept = int(table.total("weight_stored_bytes"))
            assert kept + towers == stored_bytes(spec, weights), (spec.id, weights)


@given(shapes, st.integers(1, 5), st.integers(1, 40))
def test_a_step_reads_no_more_than_lies_in_the_cache(spec: ModelSpec, batch: int, context: int) -> None:
    step = table_of(spec, batch, 1, context)
    resident = float(cache_bytes(spec, "bf16", batch, context) + index_bytes(spec, batch, context))
    shared = float(cache_bytes(spec, "bf16", batch, context)) if spec is SHAPES["shared cache"] else 0
    assert float(step.total("kv_read_bytes")) <= (resident + shared) * (1 + 1e-12)
    if context > 1:
        assert float(step.total("state_bytes")) == 2 * batch * state_bytes(spec)


@given(shapes, st.integers(1, 3), st.integers(1, 12), st.integers(1, 12))
def test_a_prefill_in_two_parts_does_the_work_of_one(
    spec: ModelSpec, batch: int, first: int, second: int
) -> None:
    whole = by_name(table_of(spec, batch, first + second, first + second), "flops")
    head = by_name(table_of(spec, batch, first, first), "flops")
    tail = by_name(table_of(spec, batch, second, first + second), "flops")
    for name, flops in whole.items():
        if name != "lm_head":
            assert flops == pytest.approx(head[name] + tail[name], rel=1e-12), name


@given(shapes, st.integers(1, 6), st.integers(2, 9), st.integers(0, 30))
def test_verifying_drafts_reads_the_weights_once(
    spec: ModelSpec, batch: int, drafted: int, before: int
) -> None:
    context = before + drafted
    verify, step = table_of(spec, batch, drafted, context), table_of(spec, batch, 1, context)
    dense = [
        row
        for row, name in enumerate(verify.names)
        if verify.kinds[row] == "linear" and not name.startswith("experts")
    ]
    assert (verify.weight_streamed_bytes[dense] == step.weight_streamed_bytes[dense]).all()
    rows = [row for row in dense if verify.names[row] not in {"lm_head", "head_projection"}]
    assert verify.flops[rows] == pytest.approx(drafted * step.flops[rows])


@given(shapes, st.sampled_from([4, 8, 20]))
def test_a_prefill_writes_what_the_cache_keeps_and_what_windows_drop(spec: ModelSpec, tokens: int) -> None:
    """Whole blocks of compressed attention, so that no entry is begun and not kept."""
    written = float(table_of(spec, 2, tokens, tokens).total("kv_write_bytes"))
    kept = float(cache_bytes(spec, "bf16", 2, tokens) + index_bytes(spec, 2, tokens))
    bounded = any(getattr(layer.mixer, "span", None) for layer in spec.layers)
    assert written >= kept if bounded else written == pytest.approx(kept)


# --- Experts --------------------------------------------------------------------------------------


@given(st.integers(2, 64), st.integers(1, 8), st.integers(1, 300))
def test_distinct_experts_stay_within_their_bounds(experts: int, picked: int, tokens: int) -> None:
    picked = min(picked, experts)
    found = float(distinct_experts(experts, picked, tokens))
    assert picked - 1e-9 <= found <= min(experts, tokens * picked) + 1e-9
    assert float(distinct_experts(experts, picked, 1)) == picked
    assert float(distinct_experts(experts, picked, tokens + 1)) >= found


def test_distinct_experts_are_those_of_random_routing() -> None:
    random = np.random.default_rng(0)
    drawn = [
        len({int(expert) for _ in range(10) for expert in random.choice(32, 4, replace=False)})
        for _ in range(4000)
    ]
    assert float(distinct_experts(32, 4, 10)) == pytest.approx(np.mean(drawn), rel=0.01)


def test_a_token_reads_its_experts_and_all_are_kept() -> None:
    spec = shape(Layer(GQA, EXPERTS))
    one, many = table_of(spec, 1, 1, 9), table_of(spec, 64, 1, 9)
    expert = 3 * HIDDEN * 32 * 2
    read, kept = (by_name(one, f"weight_{word}_bytes") for word in ("streamed", "stored"))
    assert read["experts_gate_up"] + read["experts_down"] == 4 * expert
    assert kept["experts_gate_up"] + kept["experts_down"] == 16 * expert
    assert by_name(one, "flops")["experts_down"] == 4 * 2 * 32 * HIDDEN
    wide = by_name(many, "weight_streamed_bytes")
    assert 15.9 * expert < wide["experts_gate_up"] + wide["experts_down"] <= 16 * expert
    assert read["shared_gate_up"] + read["shared_down"] == expert
    # Sixty-four tokens with four experts each are sixteen rows for each of sixteen experts.
    assert many.tokens[many.index("experts_down")] == pytest.approx(16, rel=1e-6)


# --- Latent attention -----------------------------------------------------------------------------


class Counted:
    """Multiplies arrays and adds up what it took, two FLOPs for each multiply-accumulate."""

    def __init__(self) -> None:
        self.flops = 0

    def __call__(self, equation: str, left: Array, right: Array) -> Array:
        sizes: dict[str, int] = {}
        for letters, array in zip(equation.partition("->")[0].split(","), (left, right), strict=True):
            sizes |= dict(zip(letters, array.shape, strict=True))
        self.flops += 2 * prod(sizes.values())
        return np.asarray(np.einsum(equation, left, right))


def absorbed(parts: dict[str, Array], multiply: Counted) -> Array:
    """One new token's attention in the latent's space."""
    query = multiply("hn,hnr->hr", parts["query"], parts["key_up"])
    scores = multiply("hr,sr->hs", query, parts["latents"])
    scores = scores + multiply("hp,sp->hs", parts["query_rope"], parts["rope"])
    return multiply("hr,hrv->hv", multiply("hs,sr->hr", softmax(scores), parts["latents"]), parts["value_up"])


def expanded(parts: dict[str, Array], multiply: Counted) -> Array:
    """The same with keys and values of every token and head."""
    keys = multiply("sr,hnr->shn", parts["latents"], parts["key_up"])
    values = multiply("sr,hrv->shv", parts["latents"], parts["value_up"])
    scores = multiply("hn,shn->hs", parts["query"], keys)
    scores = scores + multiply("hp,sp->hs", parts["query_rope"], parts["rope"])
    return multiply("hs,shv->hv", softmax(scores), values)


def softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def test_both_forms_of_latent_attention_are_one_function_with_the_flops_of_the_table() -> None:
    context, random = 11, np.random.default_rng(1)
    heads, rank, nope, rope, value = MLA.num_heads, MLA.kv_rank, MLA.nope_dim, MLA.rope_dim, MLA.value_dim
    sizes = {
        "query": (heads, nope),
        "query_rope": (heads, rope),
        "latents": (context, rank),
        "rope": (context, rope),
        "key_up": (heads, nope, rank),
        "value_up": (heads, rank, value),
    }
    parts = {name: random.standard_normal(size) for name, size in sizes.items()}
    outputs = []
    forms: tuple[LatentForm, ...] = ("absorbed", "expanded")
    for form, compute in zip(forms, (absorbed, expanded), strict=True):
        multiply = Counted()
        outputs.append(compute(parts, multiply))
        flops = by_name(table_of(shape(Layer(MLA, MLP)), 1, 1, context, form), "flops")
        assert multiply.flops == flops["latent_up"] + flops["attention"]
    assert outputs[0] == pytest.approx(outputs[1])


def test_latents_are_cheaper_absorbed_in_decode_and_expanded_in_prefill() -> None:
    spec = stacked(Layer(MLA, MLP), times=2)

    def flops(new: int, context: int, form: LatentForm) -> float:
        return float(table_of(spec, 1, new, context, form).total("flops"))

    assert flops(1, 500, "absorbed") < flops(1, 500, "expanded")
    assert flops(500, 500, "absorbed") > flops(500, 500, "expanded")


# --- Windows, sparse picks, states ----------------------------------------------------------------


def test_an_indexer_bounds_what_attention_reads() -> None:
    step = table_of(SHAPES["sparse latent"], 1, 1, 100)
    latent = (32 + 8) * 2
    assert by_name(step, "kv_read_bytes")["attention"] == 4 * 5 * latent
    assert by_name(step, "kv_read_bytes")["index_attention"] == 4 * 100 * (16 + 4)
    short = table_of(SHAPES["sparse latent"], 1, 1, 3)
    assert by_name(short, "kv_read_bytes")["attention"] == 4 * 3 * latent


@given(st.integers(1, 40), st.integers(0, 60))
def test_compressed_attention_sees_its_window_and_the_best_whole_blocks(new: int, before: int) -> None:
    seen = sum(min(position, 6) + min(position // 4, 3) for position in range(before + 1, before + new + 1))
    table = table_of(SHAPES["compressed"], 1, new, before + new)
    assert by_name(table, "flops")["attention"] == 4 * seen * 2 * 2 * 8 * 16


def test_a_layer_without_its_own_cache_reads_and_does_not_write() -> None:
    step = table_of(SHAPES["shared cache"], 1, 1, 10)
    token = 2 * 4 * 16 * 2
    assert float(step.total("kv_read_bytes")) == 4 * 10 * token
    assert float(step.total("kv_write_bytes")) == 2 * token


def test_a_new_state_is_written_and_not_read() -> None:
    spec = SHAPES["delta net"]
    prefill, later = table_of(spec, 3, 5, 5), table_of(spec, 3, 5, 6)
    assert float(prefill.total("state_bytes")) == 3 * state_bytes(spec)
    assert float(later.total("state_bytes")) == 6 * state_bytes(spec)


def test_keys_that_are_not_rotated_have_no_rotary_row() -> None:
    chunked = table_of(SHAPES["chunks"], 1, 1, 1)
    assert chunked.repeats[chunked.index("rope")] == 2
    assert chunked.names.count("rope") == 1


def test_wide_keys_count_scores_and_sums_apart() -> None:
    step = table_of(SHAPES["wide keys"], 1, 1, 10)
    assert by_name(step, "flops")["attention"] == 4 * 10 * 2 * 8 * (24 + 16)
    assert by_name(step, "kv_read_bytes")["attention"] == 4 * 10 * 4 * (24 + 16) * 2
