"""A sweep as a job: cell after cell, each streamed as it is done, until the job's time is over.

A sweep may be longer than a job. A job then returns what it has, unfinished, and the next one goes on from
there; between the two others have their turn.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import torch

from core.catalog.texts import public_text
from core.engine.engine import Engine
from core.engine.quality.evaluate import Reference, evaluate, windows
from core.errors import RequestError, UserError
from core.lab.calibration import Calibration
from core.lab.quality import REFERENCE
from core.lab.record_parts import HostRecord
from core.lab.request import EMBEDDED_MODEL
from core.lab.sweep_cell import CellQuality, SweptCell
from core.lab.sweep_forecast import expected_s
from core.lab.sweep_parts import begun_part, cell_part
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import Cell, SweepRequest
from core.lab.worker.engines import EngineShelf, Wanted, settle
from core.lab.worker.loop import JobContext
from core.lab.worker.machine_info import host_record
from core.lab.worker.outlook import Checks
from core.lab.worker.swept import CellWork
from core.units import format_seconds

#: No cell begins after so long, so that others wait no longer than for any job.
BUDGET_S: Final = 60.0
#: The longest that the runs of one cell may be expected to take.
MOST_CELL_S: Final = 45.0
#: Positions of the shipped text that are judged.
_QUALITY_TOKENS: Final = 256
_PHASE: Final = "sweeping"
#: The format of the cache with which weights are loaded.
_USUAL_KV: Final = "bf16"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sweep is run: engines, and the checks before each cell with this machine's calibration."""

    shelf: EngineShelf
    checks: Checks

    @property
    def calibration(self) -> Calibration:
        """This machine's."""
        return self.checks.calibration


def sweep(context: JobContext, payload: dict[str, Any], place: Place) -> dict[str, Any]:
    """Do a sweep, or go on with one, and return its record as JSON.

    Args:
        context: of the job.
        payload: "request", the sweep's; "record", what is done of it, or null.
        place: where.

    Raises:
        StopRequestedError: it was cancelled; what was done was streamed.
        RequestError, RecordError: the sweep cannot be made, or the record is not of it.
    """
    return run_sweep(begin(payload, place), place, context).to_json()


def begin(payload: dict[str, Any], place: Place) -> SweepRecord:
    """The record to go on from: that of the payload, or a new one."""
    request, done = SweepRequest.from_json(payload.get("request")), payload.get("record")
    if done is not None:
        record = SweepRecord.from_json(done)
        if record.request != request:
            raise RequestError("A sweep goes on with the settings that it began with. Begin anew.")
        _require_same_machine(record.host, host_record(request.device))
    else:
        record = SweepRecord(
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            host=host_record(request.device),
            calibrations=(),
            request=request,
            cells=(),
        )
    if place.calibration.id not in {calibration.id for calibration in record.calibrations}:
        record = replace(record, calibrations=(*record.calibrations, place.calibration))
    return record


def _require_same_machine(began: HostRecord, here: HostRecord) -> None:
    """A record names one machine: cells of another would stand under its name."""
    if (began.cpu, began.device_name) != (here.cpu, here.device_name):
        raise RequestError(
            f"A sweep goes on on the machine that it began on, {began.device_name or began.cpu}; this is "
            f"{here.device_name or here.cpu}. Begin anew here."
        )


def run_sweep(record: SweepRecord, place: Place, context: JobContext) -> SweepRecord:
    """Do as many cells as the time allows, then judge the formats if that was asked for."""
    started, total = time.monotonic(), len(record.request.cells())
    context.part(begun_part(record))
    for cell in record.left:
        if time.monotonic() - started > BUDGET_S:
            return record
        context.report(_PHASE, len(record.cells) / total)
        swept = _swept(cell, record.request, place, context)
        record = record.with_cell(swept)
        context.part(cell_part(swept))
    if record.unjudged and time.monotonic() - started <= BUDGET_S:
        record = _judge(record, place, context, until=started + BUDGET_S)
    return record


def _swept(cell: Cell, asked: SweepRequest, place: Place, context: JobContext) -> SweptCell:
    """One cell, or the sentence that says why it cannot be run."""
    try:
        _require_short(cell, asked, place.calibration)
        engine = _engine(cell, place)
        return CellWork(cell, engine, place.checks, asked, context).do()
    except UserError as mistake:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return SweptCell(cell, measured_at=now, problem=str(mistake))


def _engine(cell: Cell, place: Place) -> Engine:
    """The engine of a cell; on a processor loaded once for its weights, whatever the cache is."""
    threads = torch.get_num_threads()
    if place.checks.memory.device.type != "cpu":  # there the cache's format decides how attention reads it
        return place.shelf.take(Wanted(cell.model, cell.weights, cell.kv, cell.cache), threads, settle)
    usual = place.shelf.take(Wanted(cell.model, cell.weights, _USUAL_KV), threads, settle)
    engine = usual.with_cache(cell.kv)
    engine.cache = cell.cache
    return engine


def _require_short(cell: Cell, asked: SweepRequest, calibration: Calibration) -> None:
    whole_s = expected_s(cell, asked.repeats, calibration)
    if whole_s > MOST_CELL_S:
        raise RequestError(
            f"A cell may take {format_seconds(MOST_CELL_S)}; this one is predicted to take "
            f"{format_seconds(whole_s)}. Choose fewer repeats, shorter prompts or a smaller model."
        )


def _judge(record: SweepRecord, place: Place, context: JobContext, until: float) -> SweepRecord:
    """Hold pairs of formats against fp32 on the shipped text, one or more; the reference is read once."""

    def engine(weights: str, kv: str) -> Engine:
        return place.shelf.take(Wanted(EMBEDDED_MODEL, weights, kv), torch.get_num_threads())

    best = engine(REFERENCE, REFERENCE)
    cut = windows(best.text.encode(public_text().text), _QUALITY_TOKENS)
    reference = Reference.read(best, cut, lambda _, __: context.check())
    for weights, kv in record.unjudged:
        context.report("judging formats", None)
        found = evaluate(engine(weights, kv), reference, lambda _, __: context.check())
        judged = CellQuality(
            kl=max(found.kl, 0.0),
            agreement=found.agreement,
            perplexity=found.perplexity,
            tokens=sum(len(window) - 1 for window in cut),
        )
        cells = tuple(_with_quality(swept, weights, kv, judged) for swept in record.cells)
        record = replace(record, cells=cells)
        if time.monotonic() > until:
            break
    return record


def _with_quality(swept: SweptCell, weights: str, kv: str, quality: CellQuality) -> SweptCell:
    mine = swept.can_be_judged and (swept.cell.weights, swept.cell.kv) == (weights, kv)
    return swept.with_quality(quality) if mine else swept
