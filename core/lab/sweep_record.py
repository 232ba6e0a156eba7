"""What came out of a sweep: each cell's prediction, made before, beside what was measured.

A sweep may end early, because it was cancelled or its time was over; its record then says so, and the
same sweep goes on from it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from core.errors import RecordError, UserError
from core.lab.calibration import Calibration
from core.lab.checked_json import Reader, utc_time
from core.lab.record_file import RecordFile
from core.lab.record_parts import HostRecord
from core.lab.sealed_json import opened, sealed
from core.lab.sweep_cell import SweptCell
from core.lab.sweep_request import Cell, SweepRequest
from core.units import MB

SCHEMA: Final = "llm-inference-lab/sweep"
VERSION: Final = 1
MOST_BYTES: Final = 4 * MB
_WHAT: Final = "A sweep's record"

#: What the words in a record mean.
DEFINITIONS: Final[dict[str, str]] = {
    "ttft_s": "From the arrival of the requests, all at once, until the last of them has its first token.",
    "tpot_s": "(last token - first token) / (tokens - 1); of requests in one batch, the mean.",
    "end_to_end_s": "From the arrival of the requests until the last token of the last.",
    "samples": "One value for each repeat of the whole cell with other prompts, after a warm-up.",
    "predicted": "Made before the cell was run, from the calibration at the pace that checks showed.",
    "range": "Where 80 of 100 measurements are expected; wider outside of what was calibrated.",
    "floor": "Bytes over the best bandwidth of the calibration, or FLOPs over its best rate, whichever is "
    "longer: nothing can be faster on the machine as it was calibrated.",
    "operators_s": "Predicted seconds by operator; 'step' is what a step costs besides its operators.",
}


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """One sweep, whole or not.

    Attributes:
        created_at: when it began, ISO time, UTC. host: where.
        calibrations: all that predictions were made with; a cell names its own by id.
        request: what was asked. cells: what was done, in order.
    """

    created_at: str
    host: HostRecord
    calibrations: tuple[Calibration, ...]
    request: SweepRequest
    cells: tuple[SweptCell, ...]

    @property
    def left(self) -> tuple[Cell, ...]:
        """Cells that are still to be run."""
        done = {swept.cell for swept in self.cells}
        return tuple(cell for cell in self.request.cells() if cell not in done)

    @property
    def is_finished(self) -> bool:
        """Nothing is left, the quality of the formats included where it was asked for."""
        return not self.left and not self.unjudged

    @property
    def unjudged(self) -> tuple[tuple[str, str], ...]:
        """Pairs of formats whose quality was asked for and is not known yet, in order."""
        if not self.request.quality:
            return ()
        pairs = {(s.cell.weights, s.cell.kv): s.quality for s in self.cells if s.can_be_judged}
        return tuple(pair for pair, found in pairs.items() if found is None)

    def with_cell(self, cell: SweptCell) -> SweepRecord:
        """The same record with one cell more."""
        return replace(self, cells=(*self.cells, cell))

    def to_json(self) -> dict[str, Any]:
        """A plain object with schema, definitions and a checksum over all of it."""
        content = {
            "schema": SCHEMA,
            "version": VERSION,
            "created_at": self.created_at,
            "host": asdict(self.host),
            "calibrations": [calibration.to_json() for calibration in self.calibrations],
            "request": self.request.to_json(),
            "cells": [cell.to_json() for cell in self.cells],
            "definitions": DEFINITIONS,
        }
        return sealed(content)

    @classmethod
    def from_json(cls, data: object) -> SweepRecord:
        """Read a record back and check that it adds up.

        Raises:
            RecordError: a value is missing or out of bounds, or the record was changed.
        """
        reader = opened(data, _WHAT, SCHEMA, VERSION)
        record = cls(
            created_at=utc_time(reader, "created_at"),
            host=HostRecord.from_reader(reader.inner("host")),
            calibrations=tuple(Calibration.from_json(item.data) for item in reader.objects("calibrations")),
            request=_request(reader),
            cells=tuple(SweptCell.from_reader(item) for item in reader.objects("cells")),
        )
        _check(record)
        return record


def _request(reader: Reader) -> SweepRequest:
    try:
        return SweepRequest.from_json(reader.inner("request").data)
    except UserError as mistake:
        raise RecordError(f"{_WHAT} must hold a sweep that could be asked for. {mistake}") from mistake


def _check(record: SweepRecord) -> None:
    """Check what a checksum cannot: that the cells are those of the request."""
    asked, known = record.request.cells(), {calibration.id for calibration in record.calibrations}
    found = [swept.cell for swept in record.cells]
    if len(set(found)) != len(found) or not set(found) <= set(asked):
        problem = "it holds cells that its request does not give"
    elif any(swept.calibration not in known for swept in record.cells if not swept.problem):
        problem = "a cell names a calibration that it does not hold"
    else:
        return
    raise RecordError(f"{_WHAT} must tell one story, but {problem}. Load the file that was saved.")


#: Records as files.
FILE: Final = RecordFile(_WHAT, SweepRecord.from_json, MOST_BYTES, "Sweep fewer cells.")
dumps, loads, save, load = FILE.dumps, FILE.loads, FILE.save, FILE.load
