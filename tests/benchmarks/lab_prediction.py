"""How far predictions are from measurements on this machine, over formats and contexts."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from core.lab import bench
from core.lab.client import LabClient
from core.lab.compare import TPOT_TOLERANCE, TTFT_TOLERANCE
from core.lab.pace import Pace
from core.units import format_gb, format_seconds
from tests.benchmarks.figure import Figure, machine_in_words, report

_PERCENT: Final = 100
#: Shared machines have noisy seconds: what was disturbed is run again.
TRIES: Final = 4


def measure() -> list[Figure]:
    """Calibrate in full, run every format at each context, and give the errors."""
    with closing(LabClient(bench.LIMITS)) as lab:
        bench.wait_until_ready(lab, "cpu")
        calibration = bench.calibrate(lab, "cpu", print)
        rows = bench.run_grid(lab, bench.CONTEXTS, "cpu", print, TRIES)
    note = f"calibration {calibration.measured_at}, noisy: {'; '.join(calibration.noisy) or 'no'}"
    figures = []
    for row in rows:
        figures += _figures(row, note)
    return figures


def _figures(row: bench.Row, note: str) -> list[Figure]:
    record, comparison = row.record, row.comparison
    where = f"{record.request.weights} at {record.prediction.prompt_tokens:,}"
    load, calibrated = record.load, record.calibration.pace
    conditions = (
        f"{_pace(load.before)} before, {_pace(load.after)} after, {_pace(calibrated)} when calibrated, "
        f"embedded model, {record.host.threads} threads, {machine_in_words()}, "
        f"{len(record.measured.decode_repeats_s)} steps and {len(record.measured.prefill_repeats_s)} "
        f"prefills, {note}; run noisy: {'; '.join(record.noisy) or 'no'}"
    )
    figures = []
    for ratio, tolerance in ((comparison.tpot, TPOT_TOLERANCE), (comparison.ttft, TTFT_TOLERANCE)):
        if ratio is not None:
            error = (ratio.predicted_s / ratio.measured_s - 1) * _PERCENT
            target = f"within {tolerance:.0%} on a quiet machine"
            figures.append(Figure(f"{ratio.name} predicted, {where}", error, "%", target, conditions))
    return figures


def _pace(pace: Pace) -> str:
    return f"memory {format_gb(pace.read_bytes_per_s)}/s and a call {format_seconds(pace.call_s)}"


if __name__ == "__main__":
    report(measure)
