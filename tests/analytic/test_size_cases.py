"""Worked cases of sizes and shares: what experts keep, what files spend on a parameter, what is unknown."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from core.analytic.cost import Power, Work, drawn_power_w, token_energy
from core.analytic.datasheet import machine_from
from core.analytic.memory import footprint
from core.analytic.params import WeightPlan, count, layer_weights, outer_weights
from core.analytic.rounding import SYMMETRIC, rounding
from core.catalog.accelerators import accelerator
from core.catalog.formats import STORAGE_FORMATS, bits_per_parameter
from core.catalog.hf_config import read_config
from core.catalog.models import model
from core.catalog.towers import tower_bytes
from core.errors import FormatError, ScenarioError
from core.units import GB, GIB
from tests.data_cases import case, relative_tolerance

Answers = dict[str, Any]
UNITS = {"GiB": GIB, "GB": GB}


def resident_experts(given: Answers) -> Answers:
    """What a step of one token keeps in memory, of the real model: everything, whatever it reads."""
    spec = model("qwen3.5-122b-a10b")
    chip = machine_from(accelerator("h200-sxm-141gb"))
    need = footprint(spec, chip, batch=1, context=1, weights="bf16", kv="bf16")
    kept = float(need.weights_bytes) / (2 * count(spec).total)
    return {"weight_memory": kept * given["parameters_total"] * given["bytes_per_weight"]}


def impossible_bits(given: Answers) -> Answers:
    size, record = int(given["bytes_on_disk"]), STORAGE_FORMATS[given["dtype"]]
    counted = int(given["counted_parameters"])
    assert record.can_be(counted, size)
    return {
        "bits_per_parameter_counted": bits_per_parameter(counted, size),
        "claimed_is_possible": record.can_be(int(given["claimed_parameters"]), size),
    }


def mixed_file(given: Answers) -> Answers:
    """llama.cpp's recipe of a Q2_K file, on the model that the case counts."""
    spec = model("llama-3.1-8b")
    assert count(spec).total == given["parameters"]
    q2, q3, q4, q6 = (STORAGE_FORMATS[key] for key in ("q2_k", "q3_k", "q4_k", "q6_k"))
    mixer = spec.layers[0].attention
    finer = {"down": (q3, 1.0), "output": (q3, 1.0), "qkv": (q4, mixer.value_features / mixer.qkv_features)}
    plan = WeightPlan(q2, head=q6, table=q2, vector=STORAGE_FORMATS["fp32"], shared_table=False, finer=finer)
    layer = layer_weights(spec.layers[0], spec.hidden_size)
    inner = sum(plan.bytes_of(weight, name) for name, group in layer.items() for weight in group)
    outer = sum(plan.bytes_of(weight) for weight in chain(*outer_weights(spec).values()))
    return {"file_size": spec.num_layers * inner + outer}


def unknown_projector(given: Answers) -> Answers:
    """An encoder of a kind that is not known, beside a text model whose size is."""
    sizes = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    spec = read_config(
        {
            "text_config": {**sizes, "intermediate_size": 64, "vocab_size": 9},
            "vision_config": {"model_type": "?"},
        }
    )
    assert given["projector_type"] == "unknown"
    projector = tower_bytes(spec.towers[0], 2, int(given["projector_gb"] * GB))
    assert projector is not None
    both = given["model_gb"] * GB + projector
    return {
        "projector_memory": projector,
        "weights_and_projector": both,
        "weights_and_projector_binary": both,
    }


def block_of_eight_bits(given: Answers) -> Answers:
    found = rounding(given["format"].lower(), given["block_absmax"])
    return {"scale": found.step, "max_abs_error": found.largest_error}


def shares_of_power(given: Answers) -> Answers:
    percent = given["breakdown_percent"]
    with pytest.raises(ScenarioError, match="Divide percentages by 100"):
        drawn_power_w(given["power_w"], percent, given["utilisation"])
    shares = {part: value / 100 for part, value in percent.items()}
    watts = drawn_power_w(given["power_w"], shares, given["utilisation"])
    seconds = given["latency_ms"] / 1e3
    # One prompt token whose prefill takes that long.
    work = Work(ttft_s=seconds, tpot_s=0.0, batch=1, input_tokens=1, output_tokens=1)
    joules = float(token_energy(work, Power(watts, watts, 0.0)).input_j)
    return {"average_power": watts, "energy": joules, "energy_kwh": joules / 3.6e6}


ANSWERS: dict[str, Callable[[Answers], Answers]] = {
    "moe-memory-total-122b": resident_experts,
    "bpw-sanity-vendor-headline": impossible_bits,
    "q2k-real-bpw": mixed_file,
    "gguf-mmproj-not-llm": unknown_projector,
    "q8-0-error-bound": block_of_eight_bits,
    "energy-percent-vs-fraction": shares_of_power,
}


@pytest.mark.parametrize("case_id", ANSWERS)
def test_the_answer_is_the_worked_one(case_id: str) -> None:
    worked = case(case_id)
    found = ANSWERS[case_id](worked["input"])
    assert worked["expected"].keys() == found.keys()
    for name, expected in worked["expected"].items():
        if isinstance(expected["value"], bool):
            assert found[name] is expected["value"], name
            continue
        wanted = expected["value"] * UNITS.get(expected["unit"], 1)
        assert found[name] == pytest.approx(wanted, rel=relative_tolerance(worked)), name


def test_an_encoder_that_is_known_does_not_need_its_file() -> None:
    tower = model("gemma-3-27b").towers[0]
    assert tower.parameters is not None
    assert tower_bytes(tower, 2, file_bytes=1) == 2 * tower.parameters


def test_grids_of_unequal_steps_are_refused() -> None:
    assert all(rounding(key, 0.0).largest_error == 0 for key in SYMMETRIC)
    with pytest.raises(FormatError, match="equal steps around nought must be one of int8"):
        rounding("nf4", 1.0)
    with pytest.raises(FormatError, match="must be a number from 0; got nan"):
        rounding("q8_0", float("nan"))
    with pytest.raises(FormatError, match="must have a parameter or more; got 0"):
        bits_per_parameter(0, 1)
