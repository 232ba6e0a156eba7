"""The numbers of "Prefill and decode": two ceilings, two times, and what each pass moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.latency import speed, step_time
from core.analytic.operators import operators
from core.analytic.params import count
from core.analytic.plan import Plan, plan
from core.analytic.roofline import ridge_flops_per_byte
from core.analytic.table import Operators
from core.catalog.formats import FORMATS
from core.errors import FormatError
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.units import GB

#: Decode ticks that one timeline draws at most; past it, neighbours are one tick.
MOST_TICKS: Final = 256


def _plan(case: LessonCase) -> Plan:
    return plan(case.scenario, case.model, case.machine)


def _table(case: LessonCase, new_tokens: int, context: int) -> Operators:
    scenario = case.scenario
    return operators(
        case.model,
        batch=scenario.batch,
        new_tokens=new_tokens,
        context=context,
        weights=scenario.weights,
        kv=scenario.kv,
    )


def _prefill(case: LessonCase) -> Operators:
    return _table(case, case.scenario.input_tokens, case.scenario.input_tokens)


def _first_step(case: LessonCase) -> Operators:
    """The first decode step: one new token after the prompt."""
    return _table(case, 1, case.scenario.input_tokens + 1)


def _peak_flops_per_s(case: LessonCase) -> float:
    needed = FORMATS[case.scenario.weights].compute
    if needed not in case.machine.peak_flops_per_s:
        raise FormatError(
            f"{case.machine.name} must have {needed} arithmetic for {case.scenario.weights} weights, and it "
            "has none. Choose another weight format."
        )
    return case.machine.peak_flops_per_s[needed]


def prefill_flops(case: LessonCase) -> Amount:
    """FLOPs of one prefill of the batch."""
    return Amount(float(_prefill(case).total("flops")) / 1e12, "TFLOP")


def prefill_bytes(case: LessonCase) -> Amount:
    """Bytes that one prefill moves."""
    return Amount(float(_prefill(case).streamed_bytes.sum()) / GB, "GB")


def decode_flops(case: LessonCase) -> Amount:
    """FLOPs of the first decode step."""
    return Amount(float(_first_step(case).total("flops")) / 1e9, "GFLOP")


def decode_bytes(case: LessonCase) -> Amount:
    """Bytes that the first decode step moves."""
    return Amount(float(_first_step(case).streamed_bytes.sum()) / GB, "GB")


def prefill_intensity(case: LessonCase) -> Amount:
    """FLOPs that a prefill does for each byte it moves."""
    table = _prefill(case)
    return Amount(float(table.total("flops") / table.streamed_bytes.sum()), "FLOP/B")


def decode_intensity(case: LessonCase) -> Amount:
    """The same of the first decode step."""
    table = _first_step(case)
    return Amount(float(table.total("flops") / table.streamed_bytes.sum()), "FLOP/B")


def ridge(case: LessonCase) -> Amount:
    """FLOPs a byte from which the chip waits for arithmetic."""
    peak, bandwidth = _peak_flops_per_s(case), case.machine.bandwidth_bytes_per_s
    return Amount(ridge_flops_per_byte(peak, bandwidth), "FLOP/B")


def peak(case: LessonCase) -> Amount:
    """The chip's dense peak in the format that the weights are multiplied in."""
    return Amount(_peak_flops_per_s(case) / 1e12, "TFLOP/s")


def sparse_peak(case: LessonCase) -> Amount:
    """The peak that a data sheet prints with 2:4 sparsity: twice the dense one."""
    return Amount(2 * _peak_flops_per_s(case) / 1e12, "TFLOP/s")


def bandwidth(case: LessonCase) -> Amount:
    """The chip's peak memory bandwidth."""
    return Amount(case.machine.bandwidth_bytes_per_s / 1e12, "TB/s")


def prompt_tokens(case: LessonCase) -> Amount:
    """Prompt tokens of all sequences together."""
    return Amount(case.scenario.batch * case.scenario.input_tokens, "tokens")


def weight_bytes(case: LessonCase) -> Amount:
    """Bytes of weights that one decode step reads."""
    return Amount(float(_first_step(case).total("weight_streamed_bytes")) / GB, "GB")


def weight_share(case: LessonCase) -> Amount:
    """The part of a decode step's bytes that are weights."""
    table = _first_step(case)
    return Amount(100 * float(table.total("weight_streamed_bytes") / table.streamed_bytes.sum()), "%")


def batch(case: LessonCase) -> Amount:
    """Sequences served together, each of which gets one token a step."""
    return Amount(case.scenario.batch, "")


def prefill_ceiling(case: LessonCase) -> Amount:
    """Prompt tokens a second that the peak allows: ``peak / FLOPs of a prompt token``."""
    tokens = case.scenario.batch * case.scenario.input_tokens
    return Amount(tokens * _peak_flops_per_s(case) / float(_prefill(case).total("flops")), "tokens/s")


def decode_ceiling(case: LessonCase) -> Amount:
    """Answer tokens a second that the bandwidth allows: ``batch * bandwidth / bytes of a step``."""
    moved = float(_first_step(case).streamed_bytes.sum())
    return Amount(case.scenario.batch * case.machine.bandwidth_bytes_per_s / moved, "tokens/s")


def ceiling_ratio(case: LessonCase) -> Amount:
    """How many times as high the prefill's ceiling is as the decode's."""
    return Amount(prefill_ceiling(case).value / decode_ceiling(case).value, "×")


def ttft_floor(case: LessonCase) -> Amount:
    """Time to first token at a share ``mfu`` of the peak: ``FLOPs / (mfu * peak)``."""
    flops = float(_prefill(case).total("flops"))
    return Amount(1e3 * flops / (case.number("mfu") * _peak_flops_per_s(case)), "ms")


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
    return Amount(1e3 * float(_first_step(case).total("flops")) / _peak_flops_per_s(case), "ms")


def step_at_bandwidth(case: LessonCase) -> Amount:
    """What the first decode step's bytes take at the peak bandwidth."""
    moved = float(_first_step(case).streamed_bytes.sum())
    return Amount(1e3 * moved / case.machine.bandwidth_bytes_per_s, "ms")


def parameters(case: LessonCase) -> Amount:
    """Parameters of the model."""
    return Amount(count(case.model).total)


def ttft(case: LessonCase) -> Amount:
    """Predicted time to first token."""
    return Amount(1e3 * float(_plan(case).ttft_s or np.nan), "ms")


def tpot(case: LessonCase) -> Amount:
    """Predicted time per output token."""
    return Amount(1e3 * float(_plan(case).tpot_s or np.nan), "ms")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        prefill_flops, prefill_bytes, decode_flops, decode_bytes, prefill_intensity, decode_intensity, ridge,
        peak, sparse_peak, bandwidth, prompt_tokens, weight_bytes, weight_share, batch, prefill_ceiling,
        decode_ceiling, ceiling_ratio, ttft_floor, ttft_at_full_peak, mfu_share,
        prompt_read_at_decode_pace, step_at_peak, step_at_bandwidth, parameters, ttft, tpot,
    )
}  # fmt: skip


# --- What the picture shows -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """One answer of a batch in time, and what each pass moves and computes.

    Attributes:
        prefill_s: seconds of the prefill. step_s: of each decode step, ``[steps]``.
        prefill_bytes, step_bytes, prefill_flops, step_flops: of the prefill, and of the first step.
    """

    prefill_s: float
    step_s: NDArray[np.float64]
    prefill_bytes: float
    step_bytes: float
    prefill_flops: float
    step_flops: float

    @property
    def starts_s(self) -> NDArray[np.float64]:
        """When each step begins."""
        return self.prefill_s + np.concatenate([[0.0], np.cumsum(self.step_s)[:-1]])

    @property
    def end_s(self) -> float:
        """When the last token is there."""
        return self.prefill_s + float(self.step_s.sum())


def timeline(case: LessonCase) -> Timeline:
    """Time one prefill and every decode step after it, on the case's machine.

    A long answer is shown as ``MOST_TICKS`` ticks of several steps each, whose times add up to the same.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    scenario = case.scenario
    prefill, step = _prefill(case), _first_step(case)
    return Timeline(
        prefill_s=float(step_time(prefill, case.machine)),
        step_s=_ticks(case, scenario.output_tokens - 1),
        prefill_bytes=float(prefill.streamed_bytes.sum()),
        step_bytes=float(step.streamed_bytes.sum()),
        prefill_flops=float(prefill.total("flops")),
        step_flops=float(step.total("flops")),
    )


def _ticks(case: LessonCase, steps: int) -> NDArray[np.float64]:
    if steps < 1:
        return np.zeros(0)
    edges = np.unique(np.linspace(0, steps, min(steps, MOST_TICKS) + 1).round())
    lengths, middles = np.diff(edges), (edges[:-1] + edges[1:] + 1) / 2
    contexts = case.scenario.input_tokens + middles
    table = operators(
        case.model,
        batch=case.scenario.batch,
        new_tokens=1,
        context=contexts,
        weights=case.scenario.weights,
        kv=case.scenario.kv,
    )
    return np.asarray(step_time(table, case.machine) * lengths)


def tokens_per_s_by_batch(case: LessonCase, batches: NDArray[np.float64]) -> NDArray[np.float64]:
    """Answer tokens a second at each batch, all sequences together."""
    scenario = case.scenario
    return speed(
        case.model,
        case.machine,
        batch=batches,
        input_tokens=scenario.input_tokens,
        output_tokens=max(scenario.output_tokens, 2),
        weights=scenario.weights,
        kv=scenario.kv,
    ).tokens_per_s
