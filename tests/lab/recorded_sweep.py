"""A synthetic record of a sweep that holds together, for tests to bend."""

from dataclasses import replace

from core.lab.pace import Pace
from core.lab.record_parts import HostRecord, LoadRecord
from core.lab.sweep_cell import METRICS, Estimate, Forecast, SweptCell
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import Cell, SweepRequest
from core.units import GB
from tests.lab.examples import calibration

HOST = HostRecord("cuda", "NVIDIA H200", "580.1", "A processor", 16, 128 * GB, "Linux", "3.11.7", "2.13.0", 8)
REQUEST = SweepRequest(weights=("int4", "bf16"), batches=(1, 4), prompts=(64, 512))


def sweep_record(off: float = 1.1, noisy: tuple[str, ...] = (), host: HostRecord = HOST) -> SweepRecord:
    """Every cell predicted ``off`` times what it took; the last cell could not be run."""
    machine = calibration()
    done = [swept(cell, machine.id, off, noisy) for cell in REQUEST.cells()]
    failed = replace(
        done[-1], problem="It did not fit into the memory.", forecast=None, samples=None, load=None, noisy=()
    )
    return SweepRecord("2026-11-30T06:00:00+00:00", host, (machine,), REQUEST, (*done[:-1], failed))


def swept(cell: Cell, calibration_id: str, off: float, noisy: tuple[str, ...]) -> SweptCell:
    taken_s = {"ttft": 1e-4 * cell.prompt_tokens * cell.batch, "tpot": 0.01 * cell.batch}
    taken_s["end_to_end"] = taken_s["ttft"] + 31 * taken_s["tpot"]
    times = {
        name: Estimate(off * taken_s[name], 0.8 * off * taken_s[name], 1.25 * off * taken_s[name], 0.0)
        for name in METRICS
    }
    pace = Pace(30e9, 2e-6)
    return SweptCell(
        cell=cell,
        measured_at="2026-11-30T06:01:00+00:00",
        calibration=calibration_id,
        forecast=Forecast(times, {"prefill": {"step": 1e-3}, "decode": {"step": 1e-3}}, 1e8, 1e6, ()),
        samples={name: (0.99 * taken_s[name], taken_s[name], 1.01 * taken_s[name]) for name in METRICS},
        load=LoadRecord(0.0, 0.0, 1.0, pace, pace),
        noisy=noisy,
    )
