"""Sweeps that hold together, for tests to bend."""

from dataclasses import replace

from core.lab.pace import Pace
from core.lab.record_parts import HostRecord, LoadRecord
from core.lab.sweep_cell import METRICS, CellQuality, SweptCell
from core.lab.sweep_forecast import forecast
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import Cell, SweepRequest, spec_of
from core.units import GB
from tests.lab.examples import CALL_S, READ_BYTES_PER_S, calibration

REQUEST = SweepRequest(weights=("int4", "bf16"), batches=(1, 4), prompts=(64, 256), new_tokens=8)
PACE = Pace(READ_BYTES_PER_S, CALL_S)


def swept(cell: Cell, slowness: float = 1.0, **changes: object) -> SweptCell:
    """A cell whose every time is ``slowness`` times what was predicted."""
    machine = calibration()
    made = forecast(cell, spec_of(cell.model), machine)
    taken = {name: made.times[name].value_s * slowness for name in METRICS}
    whole = SweptCell(
        cell=cell,
        measured_at="2026-11-29T12:02:00+00:00",
        calibration=machine.id,
        forecast=made,
        samples={name: (0.99 * seconds, seconds, 1.01 * seconds) for name, seconds in taken.items()},
        load=LoadRecord(0.02, 0.0, 1.5, PACE, PACE),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def sweep(request: SweepRequest = REQUEST, slowness: float = 1.1, **changes: object) -> SweepRecord:
    """A finished sweep."""
    quality = CellQuality(0.01, 0.9, 20.0, 255) if request.quality else None
    whole = SweepRecord(
        created_at="2026-11-29T12:01:00+00:00",
        host=HostRecord("cpu", "", "", "A processor", 2, 24 * GB, "Linux", "3.11.7", "2.13.0", 2),
        calibrations=(calibration(),),
        request=request,
        cells=tuple(swept(cell, slowness, quality=quality) for cell in request.cells()),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]
