"""What a cell of a sweep will take, before it is run: values, ranges and floors."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.table import Operators
from core.catalog.model import ModelSpec
from core.lab.calibration import Calibration
from core.lab.predict import PhasePrediction, Prediction, pass_table, predict_shape
from core.lab.ranges import half_width
from core.lab.rehearsal import AS_PREDICTED, Rehearsal
from core.lab.run_shape import RunShape
from core.lab.sweep_cell import Estimate, Forecast
from core.lab.sweep_request import Cell, spec_of

#: The name under which what a step costs besides its operators stands among them.
STEP: Final = "step"
#: Rates above are no measurement: the operator computes next to nothing.
_MOST_FLOPS_PER_S: Final = 1e14
#: A cell that takes less is run more often, for about so long: one hiccup is then not the median.
_ENOUGH_S: Final = 4.0
_MOST_RUNS: Final = 15


def forecast(cell: Cell, model: ModelSpec, now: Calibration, rehearsal: Rehearsal = AS_PREDICTED) -> Forecast:
    """Predict one cell.

    Args:
        cell: its settings.
        model: the shape of its model.
        now: this machine's calibration, at the pace that is expected of the cell.
        rehearsal: of the cell, just before it.

    Raises:
        RequestError: the requests do not fit the model's context, or their prompts one step.
        FormatError: the machine has no rate for a format.
    """
    shape = cell.shape
    prediction = predict_shape(shape, model, now.machine(cell.weights), rehearsal)
    outside = now.reach.beyond(shape, model)
    floors = _floors(shape, model, now)
    times = {
        "ttft": prediction.ttft_s,
        "tpot": prediction.tpot_s or prediction.ttft_s,
        "end_to_end": prediction.end_to_end_s,
    }
    doubts = len(outside) + bool(now.noisy)
    return Forecast(
        times={
            name: _estimate(seconds, half_width(name, shape.batch) * (1 + doubts), floors[name])
            for name, seconds in times.items()
        },
        operators_s=_by_operator(prediction),
        weight_bytes=prediction.memory["weights_bytes"],
        kv_bytes=prediction.memory["kv_bytes"],
        outside=outside,
    )


def expected_s(cell: Cell, repeats: int, calibration: Calibration) -> float:
    """Seconds that a cell takes with all its repeats and a warm-up, by the prediction.

    Raises:
        RequestError, FormatError: as ``forecast``.
    """
    machine = calibration.machine(cell.weights)
    once_s = predict_shape(cell.shape, spec_of(cell.model), machine).end_to_end_s
    return once_s * (1 + runs(once_s, repeats))


def runs(once_s: float, least: int) -> int:
    """How often a cell is run that is expected to take so long.

    >>> runs(0.1, 3), runs(0.5, 3), runs(2.0, 3)
    (15, 8, 3)
    """
    return min(max(least, round(_ENOUGH_S / once_s)), max(_MOST_RUNS, least))


def _estimate(seconds: float, half_width: float, floor_s: float) -> Estimate:
    factor = math.exp(half_width)
    return Estimate(seconds, seconds / factor, seconds * factor, floor_s)


def _by_operator(prediction: Prediction) -> dict[str, dict[str, float]]:
    phases: dict[str, PhasePrediction | None] = {"prefill": prediction.prefill, "decode": prediction.decode}
    return {
        name: {} if phase is None else {**phase.operators_s, STEP: phase.fixed_s}
        for name, phase in phases.items()
    }


def _floors(shape: RunShape, model: ModelSpec, now: Calibration) -> dict[str, float]:
    """What nothing can be faster than: every byte at the best bandwidth, or every FLOP at the best rate."""
    reads = np.array(shape.pieces)
    contexts = np.arange(shape.prompt_tokens + 1, shape.prompt_tokens + shape.new_tokens)
    new = np.ones_like(contexts) if shape.cached else contexts
    prefill_s = float(_floor_s(pass_table(shape, model, reads, reads.cumsum()), now).sum())
    decode_s = _floor_s(pass_table(shape, model, new, contexts), now)
    return {
        "ttft": prefill_s,
        "tpot": float(decode_s.mean()),
        "end_to_end": prefill_s + float(decode_s.sum()),
    }


def _floor_s(table: Operators, now: Calibration) -> NDArray[np.float64]:
    moved = table.total("weight_streamed_bytes") + table.total("kv_read_bytes")
    best = max(
        (f for row in now.rates for f in row.rate.flops_per_s if f < _MOST_FLOPS_PER_S),
        default=math.inf,
    )
    flops_per_s = max(best, *now.peak_flops_per_s.values())
    return np.maximum(moved / _best_bandwidth(now, float(moved.min())), table.total("flops") / flops_per_s)


def _best_bandwidth(now: Calibration, moved_bytes: float) -> float:
    """The fastest read of a working set as large, or larger; a cache may hold a smaller one."""
    measured = now.bandwidths
    as_large = [row for row in measured[1:] if row.working_set_bytes >= moved_bytes]
    below = [row for row in measured if row.working_set_bytes < moved_bytes]
    return max(row.read_bytes_per_s for row in (*below[-1:], *as_large, measured[-1]))
