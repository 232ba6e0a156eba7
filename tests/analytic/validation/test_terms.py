"""The arrays of the fit are the operator table's time on a data sheet's machine."""

from dataclasses import replace

import numpy as np
import pytest

from core.analytic.datasheet import machine_from, reached, setting_of
from core.analytic.efficiency import QUANTITIES
from core.analytic.latency import step_time
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.setting import FormatClass
from core.analytic.validation.names import Engine
from core.analytic.validation.runs import parse
from core.analytic.validation.terms import columns, log_prediction, pass_s
from core.analytic.validation.workload import Workload, workload
from tests.analytic.validation.rows import ROW


def load(style: str = "python", **change: str) -> Workload:
    (run,) = parse([{**ROW, **change}]).runs
    return workload(replace(run, engine=Engine(style, run.engine.name)))


def values(found: Workload, format: FormatClass = "16") -> dict[str, np.ndarray]:
    at = setting_of(found.run.chip, format)
    return {name: np.array([reached(name, at)]) for name in QUANTITIES}


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize(("batch", "prompt"), [(1, 128), (16, 1024), (64, 4096)])
def test_a_pass_takes_what_the_machine_says(devices: int, batch: int, prompt: int) -> None:
    found = load(batch=str(batch), input_len=str(prompt), tp=str(devices), metric="ttft_ms", output_len="1")
    run, machine = found.run, machine_from(found.run.chip)
    plan = ParallelPlan(tp=devices)
    table = device_operators(
        run.model,
        plan,
        stages(run.model, plan)[0],
        batch=batch,
        new_tokens=prompt,
        context=prompt,
        weights="bf16",
        kv="bf16",
    )
    at = columns([found])
    taken = pass_s(at, values(found), at.prefill)
    assert taken[0] == pytest.approx(float(step_time(table, machine)), rel=0.03)


def test_metrics_follow_from_the_same_passes() -> None:
    rows = {
        metric: load(metric=metric, batch="4", output_len="65")
        for metric in ("tpot_ms", "ttft_ms", "output_tok_s_total", "requests_per_s", "decode_tok_s_per_user")
    }
    scale = {name: QUANTITIES[name].start for name in QUANTITIES}
    found = {
        metric: float(np.exp(log_prediction(columns([row]), {n: np.array([v]) for n, v in scale.items()}))[0])
        for metric, row in rows.items()
    }
    assert found["decode_tok_s_per_user"] == pytest.approx(1e3 / found["tpot_ms"])
    whole_s = (found["ttft_ms"] + 64 * found["tpot_ms"]) / 1e3
    assert found["output_tok_s_total"] == pytest.approx(4 * 65 / whole_s)
    assert found["requests_per_s"] == pytest.approx(4 / whole_s)


def test_fewer_bits_are_fewer_bytes_and_a_wide_head_stays() -> None:
    wide, narrow = load(weight_bits="16"), load(weight_bits="4.25")
    shrunk = narrow.decode.linear_bytes / wide.decode.linear_bytes
    assert shrunk == pytest.approx(4.25 / 16, rel=0.01)
    assert narrow.decode.head_bytes == wide.decode.head_bytes
    packed = load("local", weight_bits="4.25", framework="ExLlamaV2")
    assert packed.decode.head_bytes < 0.4 * wide.decode.head_bytes


def test_as_many_sequences_as_fit() -> None:
    found = load(batch="max", metric="output_tok_s_total", input_len="2048", output_len="2048")
    spare = 0.9 * 81_559 * 2**20 - 15.0e9
    assert found.batch == pytest.approx(spare / (131_072 * 4096), rel=0.02)


def test_a_mixture_reads_few_experts_alone_and_all_in_company() -> None:
    alone, many = (load(model="Mixtral-8x7B", hf_id="", batch=batch) for batch in ("1", "64"))
    assert many.decode.linear_bytes / alone.decode.linear_bytes > 3
