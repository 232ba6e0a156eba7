"""Worked cases of bounds, units, costs and refused input: what no honest prediction may break."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main
from core.analytic.collectives import LinkSpeed
from core.analytic.cost import HourlyPrice, Power, Work, token_cost, token_energy
from core.analytic.datasheet import machine_from
from core.analytic.latency import step_time
from core.analytic.machine import Machine, Rate
from core.analytic.operators import operators
from core.analytic.plan import plan
from core.analytic.roofline import utilisation
from core.analytic.table import Operators, Row
from core.catalog.accelerators import accelerator
from core.catalog.formats import number_format
from core.catalog.hf_config import read_config
from core.catalog.models import model
from core.catalog.scenario import Scenario
from core.errors import UserError
from core.units import GB, GIB
from tests.data_cases import case, relative_tolerance

Answers = dict[str, Any]
UNITS = {"GiB": GIB, "GB": GB, "ms": 1e-3, "TB/s": 1e12, "TFLOP/s": 1e12}


def book_step(given: Answers) -> Answers:
    """A step of two operators on the book's machine: caches are read, matrices are multiplied."""
    chips, batch = given["chips"], given["batch"]
    rate = Rate(0.0, given["bandwidth"] * chips, (1.0,), (given["flops"] * chips,))
    machine = Machine(
        "book", "book", "data sheet", None, rate.bytes_per_s, {"bf16": given["flops"]},
        {("attention", "*"): rate, ("linear", "*"): rate}, 0.0,
    )  # fmt: skip
    table = Operators.build(
        [
            Row(
                "attention",
                "attention",
                "bf16",
                1,
                batch,
                kv_read_bytes=batch * given["kv_bytes_per_sequence"],
            ),
            Row(
                "linear",
                "linear",
                "bf16",
                1,
                batch,
                flops=2 * given["parameters"] * batch,
                weight_streamed_bytes=given["weight_bytes"],
            ),
        ]
    )
    return {"step_time": float(step_time(table, machine))}


def decimal_bandwidth(given: Answers) -> Answers:
    peak = accelerator("a100-sxm-80gb").bandwidth_bytes_per_s
    assert peak == given["bandwidth_gb_s"] * GB
    seconds = utilisation(given["bytes_read"], 1.0, peak)  # of a second, at the peak
    return {"time": float(seconds)}


def impossible_bandwidth(given: Answers) -> Answers:
    seconds, peak = given["time_ms"] / 1e3, given["peak_gb_s"] * GB
    claimed, active = (
        float(utilisation(given[f"bytes_{name}"], seconds, peak)) for name in ("claimed", "active")
    )
    assert active <= 1  # what was really read is possible
    return {
        "claimed_bandwidth": claimed * peak,
        "claimed_is_possible": claimed <= 1,
        "active_bandwidth": active * peak,
    }


def active_experts(given: Answers) -> Answers:
    """One decode step of the real model reads what its table says, at half a byte a weight."""
    spec = model("qwen3-30b-a3b")
    step = operators(spec, batch=1, new_tokens=1, context=1, weights="bf16", kv="bf16")
    read, kept = (float(step.total(f"weight_{word}_bytes")) / 2 for word in ("streamed", "stored"))
    bandwidth = given["bandwidth_gb_s"] * GB / given["bytes_per_weight"]
    return {
        "upper_bound_tokens_s": bandwidth / read,
        "total_parameter_estimate": bandwidth / kept * given["efficiency"],
    }


def bound_violated(given: Answers) -> Answers:
    read, peak = given["parameters_active"] * given["bytes_per_weight"], given["bandwidth_gb_s"] * GB
    reached = utilisation(given["measured_tokens_s"] * read, 1.0, peak)
    return {
        "upper_bound_tokens_s": 1 / float(utilisation(read, 1.0, peak)),
        "measured_below_bound": bool(reached < 1),
        "prediction_ratio": given["predicted_tokens_s"] / given["measured_tokens_s"],
    }


def both_gigabytes(given: Answers) -> Answers:
    size = float(number_format(given["weight_dtype"], "weights").vector_bytes(given["parameters"]))
    return {"bytes": size, "decimal": size, "binary": size}


def superchips(_: Answers) -> Answers:
    return {
        "GH200": accelerator("gh200-96gb").peak_flops_per_s["bf16"],
        "GB200_per_gpu": accelerator("gb200").peak_flops_per_s["bf16"],
    }


#: So many tokens that the first one, which the prefill gives, does not count.
ENDLESS = 10**13


def served(tokens_per_s: float, *, prompt_tokens_per_s: float = 1.0) -> Work:
    return Work(
        ttft_s=1 / prompt_tokens_per_s,
        tpot_s=1 / tokens_per_s,
        batch=1,
        input_tokens=1,
        output_tokens=ENDLESS,
    )


def cost_of_a_million(given: Answers) -> Answers:
    cost = token_cost(served(given["tokens_per_second"]), HourlyPrice(given["usd_per_hour"]))
    return {"usd_per_million_tokens": float(cost.output_usd)}


def cost_of_four_bits(given: Answers) -> Answers:
    size = given["parameters"] * given["bits"] / 8
    rate = given["gpus"] * given["bandwidth_tb_s"] * 1e12 / size
    cost = token_cost(served(rate), HourlyPrice(given["usd_per_hour"]))
    return {"tokens_per_second": rate, "usd_per_1k_output": float(cost.output_usd) / 1000}


def electricity(given: Answers) -> Answers:
    work = served(given["decode_tokens_s"], prompt_tokens_per_s=given["prefill_tokens_s"])
    energy = token_energy(work, Power(given["power_w"], given["power_w"], 0.0))
    usd_per_joule = given["usd_per_kwh"] / 3.6e6
    return {
        "usd_per_million_output": float(energy.output_j) * 1e6 * usd_per_joule,
        "usd_per_million_input": float(energy.input_j) * 1e6 * usd_per_joule,
    }


def beyond_the_models_context(given: Answers) -> Answers:
    spec = replace(model("qwen3-8b"), max_context=given["config"]["max_position_embeddings"])
    scenario = Scenario(model="qwen3-8b", input_tokens=given["seq_len"] - 256)
    found = plan(scenario, spec, machine_from(accelerator("h200-sxm-141gb")))
    return {
        "warning": any("was made for" in sentence for sentence in found.violations),
        "still_computes": found.tpot_s is not None,
    }


ANSWERS: dict[str, Callable[[Answers], Answers]] = {
    "step-time-book-b256": book_step,
    "bandwidth-decimal": decimal_bandwidth,
    "achieved-bw-impossible": impossible_bandwidth,
    "moe-active-not-total-3090": active_experts,
    "roofline-bound-violated": bound_violated,
    "gb-vs-gib-llama3.1-70b": both_gigabytes,
    "gh200-gb200-sparse-mix": superchips,
    "cost-per-million": cost_of_a_million,
    "cost-int4-uses-bytes": cost_of_four_bits,
    "energy-cost-v100-node": electricity,
    "validate-context-beyond-max": beyond_the_models_context,
}


@pytest.mark.parametrize("case_id", ANSWERS)
def test_the_answer_is_the_worked_one(case_id: str) -> None:
    worked = case(case_id)
    found = ANSWERS[case_id](worked["input"])
    assert worked["expected"].keys() <= found.keys()
    for name, expected in worked["expected"].items():
        wanted = expected["value"]
        if isinstance(wanted, bool):
            assert found[name] is wanted, name
            continue
        scaled = wanted * UNITS.get(expected["unit"], 1)
        assert found[name] == pytest.approx(scaled, rel=relative_tolerance(worked)), name


def refusals() -> dict[str, Callable[[], object]]:
    spec = model("qwen3-0.6b")

    def table(batch: int, context: int) -> object:
        return operators(spec, batch=batch, new_tokens=1, context=context, weights="bf16", kv="bf16")

    return {
        "batch": lambda: table(0, 1),
        "seq_len": lambda: table(1, -1),
        "num_hidden_layers": lambda: read_config({"model_type": "llama", "num_hidden_layers": "NaN"}),
        "kv_dtype": lambda: number_format("int3", "kv"),
        "bandwidth_gb_s": lambda: LinkSpeed(0.0),
    }


def test_impossible_input_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"seq_len": "context", "kv_dtype": "kv", "bandwidth_gb_s": "bandwidth"}
    worked = case("validate-zero-negative-nan")
    for given in worked["input"]["cases"]:
        (name,) = given
        if name == "tp":
            assert main(["plan", "--tp", str(given["tp"])]) == USER_MISTAKE
            assert "--tp" in capsys.readouterr().err
            continue
        with pytest.raises(UserError) as refused:
            refusals()[name]()
        assert names.get(name, name) in str(refused.value)
    assert worked["expected"]["all_rejected"]["value"] is True
