"""The numbers of "Hardware generations": what two chips' data sheets say, and what an answer makes of it."""

from __future__ import annotations

from typing import Final

from core.analytic.operators import operators
from core.analytic.params import stored_bytes
from core.analytic.roofline import ridge_flops_per_byte
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.chip_order import ORDER_QUANTITIES
from core.lesson.quantities.chip_pair import chip, known_memory_bytes, link_bytes_per_s, peak
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.workload_gain import named_gain
from core.units import GB

#: NVIDIA's data sheets print twice the dense peak where two of four weights may be left out.
_SPARSE: Final = 2.0


# --- What the sheets say --------------------------------------------------------------------------


def earlier_peak(case: LessonCase) -> Amount:
    """Dense peak of the earlier chip."""
    return Amount(peak(case, "earlier") / 1e12, "TFLOP/s")


def later_peak(case: LessonCase) -> Amount:
    """Dense peak of the later chip."""
    return Amount(peak(case, "later") / 1e12, "TFLOP/s")


def later_sparse_peak(case: LessonCase) -> Amount:
    """What the later chip's sheet prints for weights of which two in four are zero: twice the dense peak."""
    return Amount(_SPARSE * peak(case, "later") / 1e12, "TFLOP/s")


def earlier_bandwidth(case: LessonCase) -> Amount:
    """Memory bandwidth of the earlier chip."""
    return Amount(chip(case, "earlier").bandwidth_bytes_per_s / 1e12, "TB/s")


def later_bandwidth(case: LessonCase) -> Amount:
    """Memory bandwidth of the later chip."""
    return Amount(chip(case, "later").bandwidth_bytes_per_s / 1e12, "TB/s")


def compute_factor(case: LessonCase) -> Amount:
    """Dense peak of the later chip over the earlier one's."""
    return Amount(peak(case, "later") / peak(case, "earlier"), "×")


def compute_factor_with_sparsity(case: LessonCase) -> Amount:
    """The same when the later peak is taken with sparsity and the earlier one without."""
    return Amount(_SPARSE * compute_factor(case).value, "×")


def bandwidth_factor(case: LessonCase) -> Amount:
    """Bandwidth of the later chip over the earlier one's."""
    return Amount(later_bandwidth(case).value / earlier_bandwidth(case).value, "×")


def memory_factor(case: LessonCase) -> Amount:
    """Memory of the later chip over the earlier one's."""
    return Amount(known_memory_bytes(case, "later") / known_memory_bytes(case, "earlier"), "×")


def growth_gap(case: LessonCase) -> Amount:
    """How much more the arithmetic grew than the bandwidth."""
    return Amount(compute_factor(case).value / bandwidth_factor(case).value, "×")


def earlier_ridge(case: LessonCase) -> Amount:
    """FLOPs a byte from which the earlier chip waits for arithmetic."""
    bandwidth = chip(case, "earlier").bandwidth_bytes_per_s
    return Amount(ridge_flops_per_byte(peak(case, "earlier"), bandwidth), "FLOP/B")


def later_ridge(case: LessonCase) -> Amount:
    """The same of the later chip."""
    bandwidth = chip(case, "later").bandwidth_bytes_per_s
    return Amount(ridge_flops_per_byte(peak(case, "later"), bandwidth), "FLOP/B")


def later_link(case: LessonCase) -> Amount:
    """The later chip's link, one direction."""
    return Amount(link_bytes_per_s(case, "later") / GB, "GB/s")


def later_link_both_ways(case: LessonCase) -> Amount:
    """The same as a data sheet prints it: both directions together."""
    return Amount(2 * link_bytes_per_s(case, "later") / GB, "GB/s")


def weights_size(case: LessonCase) -> Amount:
    """What the model's weights take."""
    return Amount(float(stored_bytes(case.model, case.scenario.weights)) / GB, "GB")


def copy_time(case: LessonCase) -> Amount:
    """What the link needs to send the weights to a neighbour, one direction at full rate."""
    sent = float(stored_bytes(case.model, case.scenario.weights))
    return Amount(1e3 * sent / link_bytes_per_s(case, "later"), "ms")


def copy_time_over_memory(case: LessonCase) -> Amount:
    """The same at the memory's bandwidth, which is another road."""
    sent = float(stored_bytes(case.model, case.scenario.weights))
    return Amount(1e3 * sent / chip(case, "later").bandwidth_bytes_per_s, "ms")


# --- What it did for an answer --------------------------------------------------------------------


def step_bytes(case: LessonCase) -> Amount:
    """Bytes that one decode step moves: weights, cache and what lies between the operators."""
    scenario = case.scenario
    table = operators(
        case.model,
        batch=scenario.batch,
        new_tokens=1,
        context=scenario.input_tokens + 1,
        weights=scenario.weights,
        kv=scenario.kv,
    )
    return Amount(float(table.streamed_bytes.sum()) / GB, "GB")


def earlier_step_floor(case: LessonCase) -> Amount:
    """What those bytes take at the earlier chip's bandwidth."""
    return Amount(step_bytes(case).value / earlier_bandwidth(case).value, "ms")


def later_step_floor(case: LessonCase) -> Amount:
    """What those bytes take at the later chip's bandwidth."""
    return Amount(step_bytes(case).value / later_bandwidth(case).value, "ms")


def chat_gain(case: LessonCase) -> Amount:
    """How many times as fast one user's answer is on the later chip."""
    return Amount(named_gain(case, "one user chats"), "×")


def prompt_gain(case: LessonCase) -> Amount:
    """How many times as fast a long prompt with a short answer is on the later chip."""
    return Amount(named_gain(case, "long prompts"), "×")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        earlier_peak, later_peak, later_sparse_peak, earlier_bandwidth, later_bandwidth, compute_factor,
        compute_factor_with_sparsity, bandwidth_factor, memory_factor, growth_gap, earlier_ridge, later_ridge,
        later_link, later_link_both_ways, weights_size, copy_time, copy_time_over_memory, step_bytes,
        earlier_step_floor, later_step_floor, chat_gain, prompt_gain,
    )
} | ORDER_QUANTITIES  # fmt: skip
