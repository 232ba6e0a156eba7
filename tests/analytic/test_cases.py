"""Worked cases with known answers, most of them places where published calculators were wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from core.analytic.answer import tpot_s
from core.analytic.kv_cache import bytes_per_token, cache_bytes
from core.analytic.operators import operators
from core.analytic.params import count, stored_bytes
from core.analytic.roofline import critical_tokens, ridge_flops_per_byte, utilisation
from core.analytic.table import Operators
from core.catalog.accelerator import Fact
from core.catalog.accelerators import accelerator, in_base_units
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.units import GB, GIB, MIB, TB
from tests.data_cases import cases, relative_tolerance

FORMATS = {"f16": "fp16"}
SCALES = {"GiB": GIB, "GB": GB, "TFLOP/s": 1e12, "ms": 1e-3}
Input = dict[str, Any]


def spec(case: Input) -> ModelSpec:
    return read_config({"num_hidden_layers": 1, **case["config"]})


def kv_format(case: Input) -> str:
    stated = str(case.get("kv_dtype", "bf16"))
    return FORMATS.get(stated, stated)


def cache(case: Input) -> float:
    return float(cache_bytes(spec(case), kv_format(case), case["batch"], case["seq_len"]))


def token(case: Input) -> float:
    return bytes_per_token(spec(case), kv_format(case))


def decode(case: Input) -> Operators:
    return operators(
        spec(case), batch=1, new_tokens=1, context=case["context"], weights="bf16", kv=kv_format(case)
    )


def prefill_flops(case: Input) -> float:
    tokens = case["tokens"]
    table = operators(spec(case), batch=1, new_tokens=tokens, context=tokens, weights="fp16", kv="fp16")
    return float(table.total("flops"))


def head_flops(case: Input) -> float:
    sizes = {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 32}
    table = operators(
        read_config({**sizes, **case["config"]}), batch=1, new_tokens=1, context=1, weights="fp16", kv="fp16"
    )
    return float(table.flops[table.index("lm_head")])


def pair_flops(case: Input, *, causal: bool) -> float:
    """Attention alone: of a prefill, or of as many queries that each see all tokens."""
    sizes = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4096, "vocab_size": 100}
    tokens = case["tokens"]
    table = operators(
        read_config({**sizes, "intermediate_size": 64, **case["config"]}),
        batch=1 if causal else tokens,
        new_tokens=tokens if causal else 1,
        context=tokens,
        weights="bf16",
        kv="bf16",
    )
    return float(table.flops[table.index("attention")])


def capacity(name: str) -> Callable[[Input], float]:
    """Bytes of a driver's MiB."""
    return lambda case: in_base_units(Fact(case["gpus"][name], "MiB", "", ""))


def bandwidth(case: Input) -> float:
    return float(case["bandwidth_gb_s"]) * 1e9


def weight_read(case: Input) -> float:
    return float(decode(case).total("weight_streamed_bytes")) / bandwidth(case)


def kv_read(case: Input) -> float:
    return float(decode(case).total("kv_read_bytes")) / bandwidth(case)


def per_layer_read(case: Input) -> float:
    table = decode(case)
    row = table.index("attention")
    return float(table.kv_read_bytes[row] / table.repeats[row])


def peak(chip: str) -> Callable[[Input], float]:
    return lambda case: accelerator(chip).peak_flops_per_s[case["dtype"]]


def critical(bits: int) -> Callable[[Input], float]:
    def answer(case: Input) -> float:
        flops = case.get("bf16_flops") or case["dense_tflops"] * 1e12
        return critical_tokens(flops, case.get("bandwidth") or bandwidth(case), bits)

    return answer


ANSWERS: dict[str, Callable[[Input], float]] = {
    "kv_cache": cache,
    "kv_window_honoured": cache,
    "kv_window_ignored": lambda case: token(case) * case["seq_len"],
    "kv_f16": lambda case: cache({**case, "kv_dtype": "f16"}),
    "kv_bytes_per_token": token,
    "kv_heads": lambda case: spec(case).layers[0].attention.num_kv_heads,
    "head_dim": lambda case: spec(case).layers[0].attention.head_dim,
    "parameters": lambda case: count(spec(case)).total,
    "weight_bytes_bf16": lambda case: stored_bytes(spec(case), "bf16"),
    "kv_bytes_read_per_layer": per_layer_read,
    "weight_read": weight_read,
    "kv_read": kv_read,
    "tpot_floor": lambda case: weight_read(case) + kv_read(case),
    "prefill_flops": prefill_flops,
    "floor": lambda case: prefill_flops(case) / (case["dense_tflops"] * 1e12),
    "utilisation_implied": lambda case: float(
        utilisation(prefill_flops(case), case["measured_ms"] / 1e3, case["dense_tflops"] * 1e12)
    ),
    "tpot": lambda case: tpot_s(
        case["ttft_ms"] / 1e3, case["request_latency_ms"] / 1e3, case["output_tokens"]
    ),
    # The other quantity: as if nothing came before the first token.
    "mean_time_per_output_token_incl_prefill": lambda case: tpot_s(
        0.0, case["request_latency_ms"] / 1e3, case["output_tokens"] + 1
    ),
    "ridge_point": lambda case: ridge_flops_per_byte(case["dense_tflops"] * 1e12, bandwidth(case)),
    "critical_batch_bf16": critical(16),
    "critical_batch_int8_weights_bf16_math": critical(8),
    "mfu": lambda case: float(utilisation(case["achieved_tflops"] * TB, 1.0, case["peak_tflops"] * TB)),
    "flops": head_flops,
    "flops_causal_useful": lambda case: pair_flops(case, causal=True),
    "flops_full_square": lambda case: pair_flops(case, causal=False),
    "H100_SXM": peak("h100-sxm-80gb"),
    "H100_PCIe": peak("h100-pcie-80gb"),
    "H100_NVL": peak("h100-nvl-94gb"),
    "H200_SXM": peak("h200-sxm-141gb"),
    "A100": capacity("A100_80GB_mib"),
    "H100": capacity("H100_80GB_mib"),
    "B200": capacity("B200_mib"),
    "B200_decimal": capacity("B200_mib"),
}


#: The cases whose answers stand above.
ANSWERED = {
    "kv-head-dim-qwen3-0.6b",
    "kv-head-dim-qwen3-4b",
    "kv-mistral-v0.1-window",
    "kv-qwen2.5-use-sliding-window-false",
    "kv-qwen2.5-7b-256k-q8",
    "kv-gqa-llama3-70b-32k",
    "kv-param-heuristic-70b-128k",
    "kv-gpu-poor-hf-doubling",
    "params-llama2-70b-gqa",
    "params-llama3.2-1b-tied",
    "params-qwen2.5-72b-bias",
    "params-qwen1.5-72b-three-matrices",
    "gpu-capacity-units",
    "ridge-h100-dense",
    "ridge-tpu-v5e",
    "hopper-table-mixed",
    "mfu-tera",
    "lm-head-flops",
    "fused-attn-gqa-bytes",
    "prefill-attn-causal",
    "tpot-floor-llama3.1-8b",
    "prefill-floor-llama7b-a100",
    "tpot-definition",
    "validate-missing-kv-heads",
}
CASES = [case for case in cases() if case["id"] in ANSWERED]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_answer_is_the_worked_one(case: dict[str, Any]) -> None:
    for name, expected in case["expected"].items():
        scale = SCALES.get(expected["unit"], 1)
        found = ANSWERS[name](case["input"])
        assert found == pytest.approx(expected["value"] * scale, rel=relative_tolerance(case)), name


def test_capacities_of_the_catalogue_are_those_of_drivers() -> None:
    """Of H100 as the driver prints it; PyTorch's figure for B200 is a little lower."""
    assert accelerator("h100-sxm-80gb").capacity_bytes == 81_559 * MIB
    assert accelerator("b200-sxm").capacity_bytes == pytest.approx(183_359 * MIB, rel=0.005)
