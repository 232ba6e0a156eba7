"""Worked cases of formats, plans, regimes, experts and times: known answers that others got wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.analytic.collectives import Collective, LinkSpeed, collective_s
from core.analytic.experts import distinct_experts
from core.analytic.kv_cache import cache_bytes
from core.analytic.kv_regimes import (
    PagedEngine,
    admitted_blocks,
    admitted_tokens,
    blocks,
    budget_of_total,
    contiguous_bytes,
    paged_bytes,
    paged_worst_bytes,
    reused_tokens,
)
from core.analytic.memory import activation_bytes
from core.analytic.operators import operators
from core.analytic.parallel import (
    ParallelPlan,
    device_operators,
    padded_vocab,
    stage_layers,
    stages,
)
from core.analytic.params import count, stored_bytes
from core.analytic.shares import kv_heads_on_chip
from core.analytic.speculative import expected_tokens, speedup
from core.analytic.split_rules import split_violations, valid_tensor_degrees
from core.analytic.table import Operators
from core.catalog.formats import STORAGE_FORMATS, number_format
from core.catalog.hf_config import read_config
from core.catalog.mixers import Attention
from core.catalog.model import Layer, ModelSpec
from core.units import GB, GIB, MIB
from tests.analytic.shapes import EXPERTS, MLA, shape
from tests.data_cases import case, relative_tolerance

Answers = dict[str, Any]
KV = {"f16": "fp16"}
UNITS = {"GiB": GIB, "MiB": MIB, "GB": GB, "ms": 1e-3, "TB/s": 1e12}


def spec(given: Answers, **more: Any) -> ModelSpec:
    return read_config({**given["config"], **more})


def token_on_chip(given: Answers, plan: ParallelPlan) -> float:
    """Cache bytes of one token on one chip, all layers together."""
    model = spec(given)
    kv = str(KV.get(given["kv_dtype"], given["kv_dtype"]))
    return sum(float(cache_bytes(stage.shard, kv, 1, 1)) for stage in stages(model, plan))


def replicated_latent(given: Answers) -> Answers:
    each = token_on_chip(given, ParallelPlan(tp=given["tp"]))
    return {"kv_bytes_per_token_per_gpu": each, "kv_bytes_per_token_all_gpus": each * given["tp"]}


def replicated_heads(given: Answers) -> Answers:
    each = token_on_chip(given, ParallelPlan(tp=given["tp"]))
    heads = kv_heads_on_chip(given["config"]["num_key_value_heads"], given["tp"])
    return {
        "kv_heads_per_gpu": heads,
        "kv_bytes_per_token_per_gpu": each,
        "kv_bytes_per_token_cluster": each * given["tp"],
    }


def pool_per_rank(given: Answers) -> Answers:
    each, whole = (token_on_chip(given, ParallelPlan(tp=tp)) for tp in (given["tp"], 1))
    return {"kv_bytes_per_token_per_gpu": each, "capacity_ratio_vs_unsharded": whole / each}


def uneven_stages(given: Answers) -> Answers:
    layers = stage_layers(given["num_hidden_layers"], given["pp"])
    return {
        "layers_per_stage": list(layers),
        "max_stage_layers": max(layers),
        "sum": sum(layers),
        "sum_of_stages": sum(layers),
    }


def stage_weights(given: Answers) -> Answers:
    plan = ParallelPlan(pp=given["pp"])
    tables = [
        device_operators(
            spec(given), plan, stage, batch=1, new_tokens=1, context=1, weights="bf16", kv="bf16"
        )
        for stage in stages(spec(given), plan)
    ]
    first, middle, _, last = (float(table.total("weight_stored_bytes")) for table in tables)
    return {"stage_first": first, "stage_middle": middle, "stage_last": last}


def padded_rows(given: Answers) -> Answers:
    rows = padded_vocab(given["vocab_size"], given["tp"])
    extra = rows * given["tp"] - given["vocab_size"]
    size = number_format(given["weight_dtype"], "weights").matrix_bytes(extra, given["hidden_size"])
    return {"padded_vocab": rows * given["tp"], "rows_per_gpu": rows, "extra_bytes_per_matrix": size}


def expert_weights(given: Answers) -> Answers:
    model = spec(given, vocab_size=1000, num_attention_heads=64, intermediate_size=18432, **LATENT)

    def held(plan: ParallelPlan) -> float:
        (stage,) = stages(model, plan)
        table = device_operators(
            model, plan, stage, batch=1, new_tokens=1, context=1, weights=given["expert_dtype"], kv="bf16"
        )
        stored = table.by_name(table.weight_stored_bytes)
        return float(stored["experts_gate_up"] + stored["experts_down"])

    ep = given["ep"]
    return {
        "routed_expert_bytes_total": held(ParallelPlan()),
        "routed_expert_bytes_per_gpu": held(ParallelPlan(dp=ep, ep=ep)),
    }


#: What the experts' case leaves out; no expert's size depends on it.
LATENT = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
}


def ring_of_a_prefill(given: Answers) -> Answers:
    plan = ParallelPlan(tp=given["tp"])
    model, tokens = spec(given), given["tokens"]
    table = device_operators(
        model,
        plan,
        stages(model, plan)[0],
        batch=1,
        new_tokens=tokens,
        context=tokens,
        weights="bf16",
        kv="bf16",
    )
    rows = [table.index(name) for name in ("attention_all_reduce", "mlp_all_reduce")]
    link = LinkSpeed(given["link_gb_s_per_direction"] * GB)
    message = tokens * model.hidden_size * 2
    each = float(collective_s(Collective("all_reduce", given["tp"]), message, link, "ring"))
    calls = sum(table.repeats[rows])
    return {
        "allreduces": calls,
        "wire_bytes_per_gpu_per_call": sum(table.link_bytes[rows]) / calls,
        "total_time_lower_bound": each * calls,
    }


def valid_degrees(given: Answers) -> Answers:
    fine = valid_tensor_degrees(given["num_attention_heads"], given["num_key_value_heads"], given["max_tp"])
    return {"valid_tp": fine, "requested_is_valid": given.get("requested_tp") in fine}


def latent_in_three(given: Answers) -> Answers:
    experts = replace(EXPERTS, num_experts=given["n_routed_experts"])
    model = shape(Layer(replace(MLA, num_heads=given["num_attention_heads"]), experts))
    topics = {
        name: {one.topic for one in split_violations(model, plan)}
        for name, plan in (
            ("tp", ParallelPlan(tp=given["tp"])),
            ("ep", ParallelPlan(dp=given["ep"], ep=given["ep"])),
        )
    }
    return {"tp_is_valid": "heads" not in topics["tp"], "ep_is_valid": "experts" not in topics["ep"]}


# --- Formats --------------------------------------------------------------------------------------

#: Names of the table of bits, where ours differ.
BITS = {
    "NF4_block64_fp32": "nf4",
    "NF4_double_quant": "nf4-double",
    "INT4_group128_fp16scale_4bitzero": "gptq-g128",
    "MLX4_group64": "mlx-4bit",
}


def bits_per_weight(given: Answers) -> Answers:
    return {name: STORAGE_FORMATS[BITS.get(name, name.lower())].bits_per_weight for name in given["formats"]}


def blockwise_cache(given: Answers) -> Answers:
    model = spec(given)
    size = float(cache_bytes(model, given["kv_dtype"], given["batch"], given["seq_len"]))
    record = number_format(given["kv_dtype"], "kv")
    return {
        "bytes_per_element": record.bits_per_weight / 8,
        "kv_cache": size,
        "kv_bytes_per_token": size / given["seq_len"],
        "effective_bits": 8 * float(record.vector_bytes(128)) / 128,
    }


def packed_words(given: Answers) -> Answers:
    record = STORAGE_FORMATS["mlx-4bit"]
    return {"weight_bytes": given["logical_parameters"] * record.bits_per_weight / 8}


# --- Regimes --------------------------------------------------------------------------------------


def llama_cpp_windows(given: Answers) -> Answers:
    model, kv, context = spec(given), KV[given["kv_dtype"]], given["seq_len"]
    windowed, full = (
        read_config({**given["config"], "num_hidden_layers": layers, "layer_types": [kind] * layers})
        for kind, layers in (("sliding_attention", 29), ("full_attention", 5))
    )
    everything = float(contiguous_bytes(model, kv, 1, context, given["n_ubatch"]))
    parts = [float(contiguous_bytes(part, kv, 1, context, given["n_ubatch"])) for part in (windowed, full)]
    assert everything == sum(parts)
    return {
        "kv_windowed_layers_allocated": parts[0],
        "kv_full_layers": parts[1],
        "kv_windowed_layers_minimum": float(cache_bytes(windowed, kv, 1, context)),
    }


def vllm_windows(given: Answers) -> Answers:
    model = spec(given)
    engine = PagedEngine(given["block_size"], given["max_num_batched_tokens"], given["max_model_len"])
    windowed = next(
        layer.mixer
        for layer in model.layers
        if isinstance(layer.mixer, Attention) and layer.mixer.window is not None
    )
    unaware = PagedEngine(engine.block_tokens, engine.batched_tokens, engine.max_context, window_aware=False)
    return {
        "kv_resident_after_prefill": float(cache_bytes(model, "bf16", given["batch"], given["seq_len"])),
        "kv_all_layers_full": float(paged_worst_bytes(model, "bf16", given["batch"], unaware)),
        "windowed_tokens_bound_vllm": float(admitted_tokens(windowed, given["max_model_len"], engine)),
        "windowed_blocks_reserved_vllm": float(admitted_blocks(windowed, given["max_model_len"], engine)),
    }


def paged_rounding(given: Answers) -> Answers:
    held = float(blocks(given["seq_len"], given["block_size"]))
    return {
        "blocks": held,
        "kv_allocated": float(paged_bytes(spec(given), "bf16", given["batch"], given["seq_len"])),
        "internal_waste_tokens": held * given["block_size"] - given["seq_len"],
    }


def prefix_hit(given: Answers) -> Answers:
    reused = float(reused_tokens(given["prompt_tokens"], given["shared_prefix_tokens"], given["block_size"]))
    return {"prefix_tokens_reused": reused, "prefill_tokens_computed": given["prompt_tokens"] - reused}


def vllm_budget(given: Answers) -> Answers:
    total, other = given["total_memory_gib"] * GIB, given["non_kv_gib"] * GIB
    return {"kv_budget": float(budget_of_total(total, given["gpu_memory_utilization"], other))}


# --- Experts, memory, times -----------------------------------------------------------------------


def unique_experts(given: Answers) -> Answers:
    found = distinct_experts(given["num_experts"], given["top_k"], given["batches"])
    return {"expected": [float(number) for number in found]}


def mixed_checkpoint(given: Answers) -> Answers:
    model = spec(given)
    parameters = count(model)
    return {
        "parameters_total": parameters.total,
        "parameters_active": parameters.active,
        "parameters_active_excl_embedding": parameters.active - parameters.embedding,
        "weight_bytes": stored_bytes(model, given["expert_dtype"]),
    }


def no_square(given: Answers) -> Answers:
    """Twice the tokens, twice the activations: nothing grows with the square."""
    config = {"model_type": "llama", "num_hidden_layers": 1, "vocab_size": 100, "intermediate_size": 1}
    model = read_config({**config, **given["config"]})

    def peak(tokens: int) -> float:
        return float(activation_bytes(prefill(model, tokens)))

    tokens = given["tokens"]
    heads = given["config"]["num_attention_heads"]
    return {
        "attention_score_buffer": peak(2 * tokens) - 2 * peak(tokens),
        "attention_score_buffer_eager_fp16": tokens**2 * heads * 2,
    }


def prefill(model: ModelSpec, tokens: int) -> Operators:
    return operators(model, batch=1, new_tokens=tokens, context=tokens, weights="bf16", kv="bf16")


def drafted(given: Answers) -> Answers:
    rate, number = given["acceptance"], given["draft_tokens"]
    return {
        "expected_tokens_per_step": float(expected_tokens(rate, number)),
        "speedup": float(speedup(rate, number, given["draft_cost_ratio"])),
    }


ANSWERS: dict[str, Callable[[Answers], Answers]] = {
    "kv-mla-tp8-replicated": replicated_latent,
    "tp-kv-replication-70b-tp16": replicated_heads,
    "tp-kv-pool-per-rank": pool_per_rank,
    "pp-uneven-61x4": uneven_stages,
    "pp-layers-lost": uneven_stages,
    "pp-stage-weights-70b": stage_weights,
    "vocab-padding-32001-tp8": padded_rows,
    "ep-expert-weights-kimi": expert_weights,
    "tp-allreduce-ring-70b": ring_of_a_prefill,
    "tp-valid-28-4": valid_degrees,
    "tp-valid-52-mha": valid_degrees,
    "tp-invalid-mla-64-tp3": latent_in_three,
    "bpw-table": bits_per_weight,
    "kv-q8-block-not-element": blockwise_cache,
    "kv-int8-per-token-head-scales": blockwise_cache,
    "mlx-packed-u32": packed_words,
    "kv-swa-gemma3-4b-llamacpp-alloc": llama_cpp_windows,
    "kv-gptoss20b-two-regimes": vllm_windows,
    "kv-paged-rounding": paged_rounding,
    "kv-prefix-hit-whole-blocks": prefix_hit,
    "vllm-kv-budget-of-total": vllm_budget,
    "moe-unique-experts-256": unique_experts,
    "moe-gptoss120b-bytes": mixed_checkpoint,
    "flash-no-quadratic-activation": no_square,
    "spec-decode-speedup": drafted,
}


@pytest.mark.parametrize("case_id", ANSWERS)
def test_the_answer_is_the_worked_one(case_id: str) -> None:
    worked = case(case_id)
    tolerance = worked["tolerance"]
    absolute = tolerance["value"] if tolerance["type"] == "abs" else 0.0
    found = ANSWERS[case_id](worked["input"])
    assert worked["expected"].keys() <= found.keys()
    for name, expected in worked["expected"].items():
        wanted = expected["value"]
        if isinstance(wanted, list | bool):
            assert found[name] == (pytest.approx(wanted, abs=absolute) if absolute else wanted), name
            continue
        scaled = wanted * UNITS.get(expected["unit"], 1)
        assert found[name] == pytest.approx(scaled, rel=relative_tolerance(worked), abs=absolute), name
