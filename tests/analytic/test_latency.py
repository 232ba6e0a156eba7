"""Times keep the laws of the roofline, whatever the model, the chip and the load."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.answer import end_to_end_s, prefill_s, speed, tpot_s
from core.analytic.datasheet import machine_from
from core.analytic.latency import bound, operator_times, step_time
from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.analytic.table import Operators
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue, model
from core.errors import FormatError

H100 = machine_from(accelerator("h100-sxm-80gb"))
SMALL = model("smollm2-135m")
models = st.sampled_from(list(catalogue().values()))
machines = st.sampled_from(
    [machine_from(chip) for chip in accelerators().values() if "bf16" in chip.peak_flops_per_s]
)
batches = st.integers(1, 512)
contexts = st.integers(1, 10**5)
FORMATS = {"weights": "bf16", "kv": "bf16"}


def decode(spec: ModelSpec, batch: int, context: int) -> Operators:
    return operators(spec, batch=batch, new_tokens=1, context=context, weights="bf16", kv="bf16")


def scaled(machine: Machine, bandwidth: float, compute: float) -> Machine:
    """The same machine with its memory and its arithmetic so many times as fast."""
    rates = {
        key: replace(
            rate,
            bytes_per_s=rate.bytes_per_s * bandwidth,
            flops_per_s=tuple(flops * compute for flops in rate.flops_per_s),
        )
        for key, rate in machine.rates.items()
    }
    return replace(machine, rates=rates)


@given(models, machines, batches, contexts)
def test_no_step_beats_its_floor(spec: ModelSpec, machine: Machine, batch: int, context: int) -> None:
    table = decode(spec, batch, context)
    time_s = step_time(table, machine)
    assert time_s >= table.streamed_bytes.sum() / machine.bandwidth_bytes_per_s
    assert time_s >= table.total("flops") / machine.peak_flops_per_s["bf16"]


@given(models, machines, batches, contexts, st.tuples(st.floats(1, 100), st.floats(1, 100)))
def test_a_better_machine_is_never_slower(
    spec: ModelSpec, machine: Machine, batch: int, context: int, gain: tuple[float, float]
) -> None:
    table = decode(spec, batch, context)
    better = operator_times(table, scaled(machine, *gain))
    assert (better <= operator_times(table, machine)).all()


@given(models, machines, batches, contexts)
def test_more_load_is_never_faster(spec: ModelSpec, machine: Machine, batch: int, context: int) -> None:
    base = step_time(decode(spec, batch, context), machine)
    assert step_time(decode(spec, batch, context + 1), machine) >= base
    # The padded rate is interpolated between powers of two, which may bend by a hair.
    assert step_time(decode(spec, batch + 1, context), machine) >= base * (1 - 1e-3)


@given(models, machines, batches, contexts)
def test_a_step_is_the_sum_of_its_operators(
    spec: ModelSpec, machine: Machine, batch: int, context: int
) -> None:
    table = decode(spec, batch, context)
    times = operator_times(table, machine)
    assert float(step_time(table, machine)) == pytest.approx(machine.step_fixed_s + times.sum())
    found = bound(table, machine)
    asked = [float(found.memory_s), float(found.compute_s), float(found.overhead_s)]
    assert max(asked) <= float(step_time(table, machine)) * (1 + 1e-9)
    assert float(step_time(table, machine)) <= sum(asked) * (1 + 1e-9)


def test_decode_waits_for_memory_prefill_for_compute_and_a_small_model_for_launches() -> None:
    prefill = operators(
        model("llama-3.1-8b"), batch=1, new_tokens=4096, context=4096, weights="bf16", kv="bf16"
    )
    assert bound(decode(model("llama-3.1-8b"), 1, 2048), H100).limit == "memory"
    assert bound(prefill, H100).limit == "compute"
    assert bound(decode(SMALL, 1, 64), H100).limit == "overhead"


def test_a_bound_says_by_how_much_over_a_sweep() -> None:
    batch = np.array([1, 1024])
    table = operators(model("llama-3.1-8b"), batch=batch, new_tokens=1, context=16, weights="bf16", kv="bf16")
    found = bound(table, H100)
    assert found.limit.tolist() == ["memory", "compute"]
    asked = np.sort(np.stack([found.memory_s, found.compute_s, found.overhead_s]), axis=0)
    assert found.factor == pytest.approx(asked[2] / asked[1])
    assert (found.factor >= 1).all()


def test_a_whole_answer_is_a_prefill_and_its_steps() -> None:
    spec = model("llama-3.1-8b")
    found = speed(spec, H100, batch=4, input_tokens=100, output_tokens=50, weights="bf16", kv="bf16")
    steps = [float(step_time(decode(spec, 4, 100 + step), H100)) for step in range(1, 50)]
    assert float(found.tpot_s) == pytest.approx(np.mean(steps), rel=1e-6)
    assert float(found.ttft_s) == float(
        prefill_s(spec, H100, batch=4, input_tokens=100, weights="bf16", kv="bf16")
    )
    assert float(found.end_to_end_s) == pytest.approx(float(found.ttft_s) + sum(steps), rel=1e-6)
    assert float(found.tokens_per_s) == pytest.approx(4 / np.mean(steps), rel=1e-6)


@given(st.floats(0.001, 10), st.floats(0.001, 10), st.integers(2, 10_000))
def test_tpot_and_end_to_end_are_inverse(ttft: float, tpot: float, tokens: int) -> None:
    total = float(end_to_end_s(ttft, tpot, tokens))
    assert tpot_s(ttft, total, tokens) == pytest.approx(tpot, rel=1e-6)


def test_one_token_has_no_time_per_further_token() -> None:
    found = speed(SMALL, H100, batch=1, input_tokens=8, output_tokens=1, weights="bf16", kv="bf16")
    assert np.isnan(found.tpot_s)
    assert found.end_to_end_s == found.ttft_s
    assert np.isnan(tpot_s(1.0, 1.0, 1))


def test_a_sweep_is_one_call_with_the_answers_of_many() -> None:
    inputs = np.array([10, 100, 1000])
    swept = speed(SMALL, H100, batch=2, input_tokens=inputs, output_tokens=20, weights="int4", kv="bf16")
    for position, tokens in enumerate(inputs):
        point = speed(
            SMALL, H100, batch=2, input_tokens=int(tokens), output_tokens=20, weights="int4", kv="bf16"
        )
        assert swept.ttft_s[position] == pytest.approx(float(point.ttft_s))
        assert swept.tpot_s[position] == pytest.approx(float(point.tpot_s))


def test_a_format_that_the_chip_lacks_is_refused() -> None:
    t4 = machine_from(accelerator("t4"))
    with pytest.raises(
        FormatError, match=r"NVIDIA T4 has no bf16 arithmetic\. Choose one of fp32, fp16, int8-dynamic"
    ):
        step_time(decode(SMALL, 1, 8), t4)
    fine = operators(SMALL, batch=1, new_tokens=1, context=8, weights="fp16", kv="fp16")
    assert step_time(fine, t4) > 0


def test_a_rate_that_was_never_measured_is_not_borrowed() -> None:
    rates = {key: rate for key, rate in H100.rates.items() if key != ("linear", "int4")}
    table = operators(SMALL, batch=1, new_tokens=1, context=8, weights="int4", kv="bf16")
    with pytest.raises(FormatError, match="was not measured with linear operators in int4"):
        step_time(table, replace(H100, rates=rates))
