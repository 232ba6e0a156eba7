"""The numbers of "Roofline": the corner, where a matrix lies, and what a log line says of a chip."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.analytic.params import stored_bytes
from core.analytic.roofline import critical_tokens, ridge_flops_per_byte, utilisation
from core.analytic.table import Operators
from core.catalog.formats import STORAGE_FORMATS
from core.errors import ConfigError
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.roof_points import pass_table, peak_flops_per_s
from core.units import BITS_PER_BYTE, GB

_TERA: Final = 1e12
_GIGA: Final = 1e9
_MS: Final = 1e3
#: A batch that a shared server may have.
_MANY: Final = 64


# --- The roof -------------------------------------------------------------------------------------


def peak(case: LessonCase) -> Amount:
    """The chip's dense peak in the format that the weights are multiplied in."""
    return Amount(peak_flops_per_s(case) / _TERA, "TFLOP/s")


def sparse_peak(case: LessonCase) -> Amount:
    """What a data sheet prints with 2:4 sparsity: twice the dense peak."""
    return Amount(2 * peak(case).value, "TFLOP/s")


def bandwidth(case: LessonCase) -> Amount:
    """The chip's peak memory bandwidth."""
    return Amount(case.machine.bandwidth_bytes_per_s / _TERA, "TB/s")


def ridge(case: LessonCase) -> Amount:
    """FLOPs a byte at the roof's corner."""
    flat, slope = peak_flops_per_s(case), case.machine.bandwidth_bytes_per_s
    return Amount(ridge_flops_per_byte(flat, slope), "FLOP/B")


def weight_bytes(case: LessonCase) -> Amount:
    """Bytes of one weight, scales included where the format has them."""
    return Amount(STORAGE_FORMATS[case.scenario.weights].bits_per_weight / BITS_PER_BYTE, "B")


def critical_batch(case: LessonCase) -> Amount:
    """Tokens in a pass from which a weight matrix waits for arithmetic: ``ridge * bytes a weight / 2``."""
    bits = weight_bytes(case).value * BITS_PER_BYTE
    return Amount(critical_tokens(peak_flops_per_s(case), case.machine.bandwidth_bytes_per_s, bits), "tokens")


# --- A decode step --------------------------------------------------------------------------------


def decode_flops(case: LessonCase) -> Amount:
    """FLOPs of the first decode step of the batch."""
    return Amount(float(pass_table(case, "decode").total("flops")) / _GIGA, "GFLOP")


def decode_bytes(case: LessonCase) -> Amount:
    """Bytes that it moves."""
    return Amount(float(pass_table(case, "decode").streamed_bytes.sum()) / GB, "GB")


def decode_intensity(case: LessonCase) -> Amount:
    """FLOPs for each byte that it moves."""
    return Amount(decode_flops(case).value / decode_bytes(case).value, "FLOP/B")


def attention_intensity(case: LessonCase) -> Amount:
    """FLOPs for each byte of the decode step's attention.

    Raises:
        ConfigError: the model has none.
    """
    table = pass_table(case, "decode")
    rows = [row for row, kind in enumerate(table.kinds) if kind in {"attention", "recurrence"}]
    if not rows:
        raise ConfigError("This number needs a model with attention. Choose another model.")
    return Amount(float(table.flops[rows].sum() / table.streamed_bytes[rows].sum()), "FLOP/B")


def decode_mfu(case: LessonCase) -> Amount:
    """The part of the peak that a decode step reaches if it takes as long as its bytes."""
    step_s = decode_bytes(case).value * GB / case.machine.bandwidth_bytes_per_s
    return _percent(decode_flops(case).value * _GIGA, step_s, peak_flops_per_s(case))


def decode_mfu_of_many(case: LessonCase) -> Amount:
    """The same for many users at once."""
    return decode_mfu(case.having({"batch": _MANY}))


def many(_: LessonCase) -> Amount:
    """The many users that the page quotes."""
    return Amount(_MANY)


# --- One matrix -----------------------------------------------------------------------------------


def _largest_matrix(case: LessonCase) -> tuple[Operators, int]:
    """The decode step's matrix with most bytes in the layers."""
    table = pass_table(case, "decode")
    moved = np.where([repeats > 1 for repeats in table.repeats], table.streamed_bytes / table.repeats, 0)
    linear = np.array([kind == "linear" for kind in table.kinds])
    return table, int(np.argmax(np.where(linear, moved, -1)))


def matrix_flops(case: LessonCase) -> Amount:
    """FLOPs of one layer's largest matrix in a decode step."""
    table, row = _largest_matrix(case)
    return Amount(float(table.flops[row] / table.repeats[row]) / _GIGA, "GFLOP")


def matrix_bytes(case: LessonCase) -> Amount:
    """Bytes that it moves: its weights, and the vectors in and out."""
    table, row = _largest_matrix(case)
    return Amount(float(table.streamed_bytes[row] / table.repeats[row]) / GB, "GB")


def matrix_time(case: LessonCase) -> Amount:
    """The least time that it can take: the larger of what its bytes and its FLOPs take."""
    bytes_ms = _MS * matrix_bytes(case).value * GB / case.machine.bandwidth_bytes_per_s
    flops_ms = _MS * matrix_flops(case).value * _GIGA / peak_flops_per_s(case)
    return Amount(max(bytes_ms, flops_ms), "ms")


# --- A log line -----------------------------------------------------------------------------------


def log_rate(case: LessonCase) -> Amount:
    """Tokens a second that a log prints, where a share ``reached`` of the bandwidth is reached."""
    scale = float(case.settings.get("reached", 0.7))
    tokens = case.scenario.batch * case.machine.bandwidth_bytes_per_s / (decode_bytes(case).value * GB)
    return Amount(scale * tokens, "tokens/s")


def mbu(case: LessonCase) -> Amount:
    """Memory bandwidth utilisation of the log line: bytes moved a second over the peak bandwidth."""
    moved = decode_bytes(case).value * GB * log_rate(case).value / case.scenario.batch
    return _percent(moved, 1.0, case.machine.bandwidth_bytes_per_s)


def mbu_of_stored(case: LessonCase) -> Amount:
    """The same if every stored byte were read, the input table included."""
    steps = log_rate(case).value / case.scenario.batch
    stored = stored_bytes(case.model, case.scenario.weights)
    return _percent(stored * steps, 1.0, case.machine.bandwidth_bytes_per_s)


def prefill_flops(case: LessonCase) -> Amount:
    """FLOPs of reading the prompts."""
    return Amount(float(pass_table(case, "prefill").total("flops")) / _TERA, "TFLOP")


def log_ttft(case: LessonCase) -> Amount:
    """Time to first token that a log prints, where a share ``reached`` of the peak is reached."""
    seconds = prefill_flops(case).value * _TERA / peak_flops_per_s(case)
    return Amount(_MS * seconds / float(case.settings.get("reached", 0.7)), "ms")


def mfu(case: LessonCase) -> Amount:
    """Model FLOPs utilisation of that line: FLOPs a second over the dense peak."""
    seconds = log_ttft(case).value / _MS
    return _percent(prefill_flops(case).value * _TERA, seconds, peak_flops_per_s(case))


def mfu_of_sparse_peak(case: LessonCase) -> Amount:
    """The same over the peak with sparsity: half."""
    return Amount(mfu(case).value / 2, "%")


def _percent(amount: float, seconds: float, peak_per_s: float) -> Amount:
    return Amount(100 * float(utilisation(amount, seconds, peak_per_s)), "%")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        peak, sparse_peak, bandwidth, ridge, weight_bytes, critical_batch, decode_flops, decode_bytes,
        decode_intensity, attention_intensity, decode_mfu, decode_mfu_of_many, many, matrix_flops,
        matrix_bytes, matrix_time, log_rate, mbu, mbu_of_stored, prefill_flops, log_ttft,
        mfu, mfu_of_sparse_peak,
    )
}  # fmt: skip
