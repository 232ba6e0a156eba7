"""The numbers of "Prefill and decode": two ceilings, two times, and what each pass moves."""

from __future__ import annotations

from typing import Final

from core.analytic.forward_pass import LatentForm
from core.analytic.operators import operators
from core.analytic.roofline import ridge_flops_per_byte
from core.analytic.table import Operators
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.roof_points import peak_flops_per_s
from core.units import GB


def _pass(case: LessonCase, new_tokens: int, context: int, latent: LatentForm = "absorbed") -> Operators:
    scenario = case.scenario
    return operators(
        case.model,
        batch=scenario.batch,
        new_tokens=new_tokens,
        context=context,
        weights=scenario.weights,
        kv=scenario.kv,
        latent=latent,
    )


def prefill_table(case: LessonCase) -> Operators:
    """The prefill of the batch."""
    return _pass(case, case.scenario.input_tokens, case.scenario.input_tokens, "expanded")


def first_step_table(case: LessonCase) -> Operators:
    """The first decode step: one new token after the prompt."""
    return _pass(case, 1, case.scenario.input_tokens + 1)


def prefill_flops(case: LessonCase) -> Amount:
    """FLOPs of one prefill of the batch."""
    return Amount(float(prefill_table(case).total("flops")) / 1e12, "TFLOP")


def prefill_bytes(case: LessonCase) -> Amount:
    """Bytes that one prefill moves."""
    return Amount(float(prefill_table(case).streamed_bytes.sum()) / GB, "GB")


def decode_flops(case: LessonCase) -> Amount:
    """FLOPs of the first decode step."""
    return Amount(float(first_step_table(case).total("flops")) / 1e9, "GFLOP")


def decode_bytes(case: LessonCase) -> Amount:
    """Bytes that the first decode step moves."""
    return Amount(float(first_step_table(case).streamed_bytes.sum()) / GB, "GB")


def prefill_intensity(case: LessonCase) -> Amount:
    """FLOPs that a prefill does for each byte it moves."""
    table = prefill_table(case)
    return Amount(float(table.total("flops") / table.streamed_bytes.sum()), "FLOP/B")


def decode_intensity(case: LessonCase) -> Amount:
    """The same of the first decode step."""
    table = first_step_table(case)
    return Amount(float(table.total("flops") / table.streamed_bytes.sum()), "FLOP/B")


def ridge(case: LessonCase) -> Amount:
    """FLOPs a byte from which the chip waits for arithmetic."""
    peak, bandwidth = peak_flops_per_s(case), case.machine.bandwidth_bytes_per_s
    return Amount(ridge_flops_per_byte(peak, bandwidth), "FLOP/B")


def peak(case: LessonCase) -> Amount:
    """The chip's dense peak in the format that the weights are multiplied in."""
    return Amount(peak_flops_per_s(case) / 1e12, "TFLOP/s")


def sparse_peak(case: LessonCase) -> Amount:
    """The peak that a data sheet prints with 2:4 sparsity: twice the dense one."""
    return Amount(2 * peak_flops_per_s(case) / 1e12, "TFLOP/s")


def bandwidth(case: LessonCase) -> Amount:
    """The chip's peak memory bandwidth."""
    return Amount(case.machine.bandwidth_bytes_per_s / 1e12, "TB/s")


def prompt_tokens(case: LessonCase) -> Amount:
    """Prompt tokens of all sequences together."""
    return Amount(case.scenario.batch * case.scenario.input_tokens, "tokens")


def weight_bytes(case: LessonCase) -> Amount:
    """Bytes of weights that one decode step reads."""
    return Amount(float(first_step_table(case).total("weight_streamed_bytes")) / GB, "GB")


def weight_share(case: LessonCase) -> Amount:
    """The part of a decode step's bytes that are weights."""
    table = first_step_table(case)
    return Amount(100 * float(table.total("weight_streamed_bytes") / table.streamed_bytes.sum()), "%")


def batch(case: LessonCase) -> Amount:
    """Sequences served together, each of which gets one token a step."""
    return Amount(case.scenario.batch, "")


def prefill_ceiling(case: LessonCase) -> Amount:
    """Prompt tokens a second that the peak allows: ``peak / FLOPs of a prompt token``."""
    tokens = case.scenario.batch * case.scenario.input_tokens
    return Amount(tokens * peak_flops_per_s(case) / float(prefill_table(case).total("flops")), "tokens/s")


def decode_ceiling(case: LessonCase) -> Amount:
    """Answer tokens a second that the bandwidth allows: ``batch * bandwidth / bytes of a step``."""
    moved = float(first_step_table(case).streamed_bytes.sum())
    return Amount(case.scenario.batch * case.machine.bandwidth_bytes_per_s / moved, "tokens/s")


def ceiling_ratio(case: LessonCase) -> Amount:
    """How many times as high the prefill's ceiling is as the decode's."""
    return Amount(prefill_ceiling(case).value / decode_ceiling(case).value, "×")


def ttft_floor(case: LessonCase) -> Amount:
    """Time to first token at a share ``mfu`` of the peak: ``FLOPs / (mfu * peak)``."""
    flops = float(prefill_table(case).total("flops"))
    return Amount(1e3 * flops / (case.number("mfu") * peak_flops_per_s(case)), "ms")


def ttft_at_full_peak(case: LessonCase) -> Amount:
    """The same at the whole peak: what comes out when the share is forgotten."""
    return ttft_floor(case.having({"mfu": 1.0}))


def mfu_share(case: LessonCase) -> Amount:
    """The share of the peak that an exercise assumes."""
    return Amount(100 * case.number("mfu"), "%")


def prompt_read_at_decode_pace(case: LessonCase) -> Amount:
    """What the prompt would take token by token, each step re-reading the weights."""
    return Amount(1e3 * case.scenario.input_tokens * case.scenario.batch / decode_ceiling(case).value, "ms")


def step_at_peak(case: LessonCase) -> Amount:
    """What the first decode step's arithmetic would take at the dense peak."""
    return Amount(1e3 * float(first_step_table(case).total("flops")) / peak_flops_per_s(case), "ms")


def step_at_bandwidth(case: LessonCase) -> Amount:
    """What the first decode step's bytes take at the peak bandwidth."""
    moved = float(first_step_table(case).streamed_bytes.sum())
    return Amount(1e3 * moved / case.machine.bandwidth_bytes_per_s, "ms")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        prefill_flops, prefill_bytes, decode_flops, decode_bytes, prefill_intensity, decode_intensity, ridge,
        peak, sparse_peak, bandwidth, prompt_tokens, weight_bytes, weight_share, batch, prefill_ceiling,
        decode_ceiling, ceiling_ratio, ttft_floor, ttft_at_full_peak, mfu_share,
        prompt_read_at_decode_pace, step_at_peak, step_at_bandwidth,
    )
}  # fmt: skip
