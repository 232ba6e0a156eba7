"""Worked cases on what a config.json says: parameters, KV bytes, state, and how keys are read."""

from collections.abc import Callable

import pytest

from core.analytic.kv_cache import bytes_per_token, cache_bytes, state_bytes
from core.analytic.params import count, stored_bytes
from core.catalog.hf_config import read_config
from core.catalog.model import Attention, DenseMLP, Mamba2, ModelSpec
from core.units import GIB, KIB
from tests.data_cases import Case, cases, relative_tolerance

MIB = KIB * KIB
SCALES = {"GiB": GIB, "MiB": MIB}
FORMATS = {"f16": "fp16"}
#: What a config of a fragment's kind has and the fragment leaves out; no answer depends on it.
REST: dict[str, dict[str, object]] = {
    "kv-hybrid-q8-48-layer": {"model_type": "qwen3_5", "hidden_size": 2048, "num_attention_heads": 8},
    "kv-mtp-layer-not-cached-65": {
        "model_type": "qwen3_5",
        "hidden_size": 5120,
        "num_attention_heads": 24,
        "num_hidden_layers": 64,  # of 65 blocks one is the draft's
    },
    "validate-null-global-kv-heads": {"hidden_size": 2048},
}


def spec(case: Case) -> ModelSpec:
    config = {**REST.get(case["id"], {}), **case["input"]["config"]}
    return read_config(config)


def kv(case: Case) -> str:
    stated = str(case["input"].get("kv_dtype", "bf16"))
    return FORMATS.get(stated, stated)


def cache(case: Case) -> float:
    given = case["input"]
    sequences = given.get("batch", 1)
    return float(cache_bytes(spec(case), kv(case), sequences, given["seq_len"]))


def token(case: Case) -> float:
    return bytes_per_token(spec(case), kv(case))


def layers_with(kind: type) -> Callable[[Case], float]:
    return lambda case: sum(isinstance(layer.mixer, kind) for layer in spec(case).layers)


def all_full(case: Case) -> float:
    given = case["input"]
    return token(case) * float(given["seq_len"]) * float(given["batch"])


def windowed(case: Case, tokens: float | None = None) -> float:
    """Bytes of the windowed layers alone, holding their window or so many tokens."""
    model = spec(case)
    mixers = [layer.mixer for layer in model.layers if layer.mixer and layer.mixer.span]
    vectors = sum(
        number * length * (tokens or mixer.span or 0)
        for mixer in mixers
        for number, length in mixer.cache_vectors
    )
    return 2.0 * vectors


def heads(case: Case, *, last: bool = False) -> Attention:
    return spec(case).layers[-1 if last else 0].attention


ANSWERS: dict[str, Callable[[Case], float]] = {
    "kv_cache": cache,
    "kv_bytes_per_token": token,
    "kv_bytes_per_token_all_layers": token,
    "kv_window_honoured": cache,
    "kv_window_ignored": all_full,
    "kv_all_layers_full": all_full,
    "kv_resident_after_prefill": cache,
    "kv_full_layers": lambda case: cache(case) - windowed(case),
    "kv_windowed_layers_minimum": windowed,
    "kv_windowed_layers_allocated": lambda case: windowed(
        case,
        1024 + case["input"]["n_ubatch"],  # the window and one micro-batch
    ),
    "tokens_if_every_layer_grows": lambda case: case["input"]["available_kv_memory_gib"] * GIB / token(case),
    "kv_bytes_per_token_per_layer": lambda case: token(case) / spec(case).num_layers,
    "recurrent_state_total": lambda case: (
        case["input"]["sequences"] * state_bytes(spec(case), "fp32", "fp32")
    ),
    "attention_layers": layers_with(Attention),
    "mamba_layers": layers_with(Mamba2),
    "mlp_layers": lambda case: sum(isinstance(layer.feed_forward, DenseMLP) for layer in spec(case).layers),
    "kv_heads": lambda case: heads(case).num_kv_heads,
    "global_kv_heads": lambda case: heads(case, last=True).num_kv_heads,
    "head_dim": lambda case: heads(case).head_dim,
    "layers_used": lambda case: spec(case).num_layers,
    "kv_f16": lambda case: float(cache_bytes(spec(case), "fp16", 1, case["input"]["seq_len"])),
    "parameters": lambda case: count(spec(case)).total,
    "parameters_total": lambda case: count(spec(case)).total,
    "parameters_main_model": lambda case: count(spec(case)).total,
    "parameters_active": lambda case: count(spec(case)).active,
    "parameters_active_excl_embedding": lambda case: count(spec(case)).active - count(spec(case)).embedding,
    "weight_bytes_bf16": lambda case: stored_bytes(spec(case), "bf16"),
    "weight_bytes_fp8_no_scales": lambda case: stored_bytes(spec(case), "bf16") / 2,
    "weight_bytes": lambda case: stored_bytes(spec(case), case["input"]["expert_dtype"]),
}
#: Names of these areas that other tests answer: engines' reservations, devices, activations.
ELSEWHERE = {"windowed_tokens_bound_vllm", "windowed_blocks_reserved_vllm", "blocks", "kv_allocated"}
ELSEWHERE |= {"internal_waste_tokens", "warning", "still_computes"}
CASES = [
    case
    for case in cases("kv", "config-parsing", "memory")
    if "config" in case["input"] and set(case["expected"]) & set(ANSWERS)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_answer_is_the_worked_one(case: Case) -> None:
    for name, expected in case["expected"].items():
        if name in ELSEWHERE:
            continue
        found = ANSWERS[name](case)
        value = expected["value"] * SCALES.get(expected["unit"], 1)
        assert found == pytest.approx(value, rel=relative_tolerance(case)), name


def test_all_cases_with_a_config_are_answered() -> None:
    answered = {case["id"] for case in CASES}
    stated = {case["id"] for case in cases("kv", "config-parsing")}
    assert stated - answered == {"kv-paged-rounding"}  # the engines' own rounding is tested beside it
    assert len(CASES) >= 38
