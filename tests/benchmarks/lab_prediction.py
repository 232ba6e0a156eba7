"""How far predictions are from measurements on this machine: the held-out protocol, three times.

Each time the worker is started anew, calibrates in full, then predicts and runs a seeded choice of cells
over three shapes that no calibration saw. ``LLM_LAB_RECORDS`` may name a folder to keep the records in:
``assets/records/sweeps`` shows them in the app, and ``docs/fit_ranges.py`` fits the ranges to them.
"""

from __future__ import annotations

import functools
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from core.lab import bench, sweep_record
from core.lab.cell_errors import CellErrors, cell_errors
from core.lab.client import LabClient
from core.lab.sweep_record import SweepRecord
from core.units import format_gb
from tests.benchmarks.figure import Figure, machine_in_words, report

#: Not 0 to 13: what a prediction follows, and how it is calibrated, was settled on the cells of those.
SEEDS: Final = (14, 15, 16)
_SAY: Final = functools.partial(print, flush=True)
_NAMES: Final = {"ttft": "TTFT", "tpot": "TPOT", "end_to_end": "whole request"}
#: Median and 90th percentile of the error that are aimed at, percent.
_TARGETS: Final = {"ttft": (10, 25), "tpot": (7, 20), "end_to_end": (7, None)}


def measure() -> list[Figure]:
    """The errors of each repeat."""
    folder = os.environ.get("LLM_LAB_RECORDS")
    figures = []
    for seed in SEEDS:
        record = held_out(seed)
        if folder:
            sweep_record.save(record, Path(folder) / f"held-out-{record.created_at[:10]}-{seed}.json")
        for found in cell_errors(record.cells):
            figures += _figures(found, record)
    return figures


def held_out(seed: int) -> SweepRecord:
    """One repeat, with a worker and a calibration of its own."""
    with closing(LabClient(bench.LIMITS)) as lab:
        bench.wait_until_ready(lab, "cpu")
        bench.calibrate(lab, "cpu", _SAY)
        *_, record = bench.run_sweep(lab, replace(bench.HELD_OUT, seed=seed), _SAY)
    return record


def _figures(found: CellErrors, record: SweepRecord) -> list[Figure]:
    median, p90 = _TARGETS[found.metric]
    kind = "noisy" if found.noisy else "quiet"
    name = f"{_NAMES[found.metric]} predicted, seed {record.request.seed}, {found.cells} {kind} cells"
    calibration = record.calibrations[-1]
    conditions = (
        f"{len(record.request.models)} shapes, {len(record.cells)} cells, {machine_in_words()}, calibration "
        f"{calibration.measured_at}, memory {format_gb(calibration.pace.read_bytes_per_s)}/s, noisy: "
        f"{'; '.join(calibration.noisy) or 'no'}; {found.in_range:.0%} in range"
    )
    aim = "" if found.noisy else f"at most {median} %"
    wide = "" if found.noisy or p90 is None else f"at most {p90} %"
    return [
        Figure(f"{name}, median error", found.median, "%", aim, conditions),
        Figure(f"{name}, 90th percentile", found.p90, "%", wide, conditions),
    ]


if __name__ == "__main__":
    report(measure)
