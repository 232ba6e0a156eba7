"""The comparison of formats: what each loses, and how fast it is, on the embedded model and here.

The reference comes first and stays; each format is then loaded, held against it, timed and dropped. Formats
that a job's time does not allow are left out and named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import torch

from core.analytic.kv_cache import bytes_per_token
from core.analytic.params import stored_bytes
from core.catalog.texts import public_text
from core.engine.engine import Engine
from core.engine.files.checkpoint import EMBEDDING, Checkpoint
from core.engine.files.models import EMBEDDED, open_checkpoint
from core.engine.quality.evaluate import WINDOW, Evaluation, Reference, beside_cache, evaluate, windows
from core.engine.quality.layer_error import ErrorMap, activation_errors, layer_matrix, weight_errors
from core.lab.host import LoadProbe
from core.lab.noise import SPREAD_LIMIT
from core.lab.quality import REFERENCE, QualityRequest
from core.lab.quality_record import FormatRow, MapRecord, QualityRecord
from core.lab.quality_tensor import TensorRecord, tensor_record
from core.lab.timing import spread
from core.lab.worker.engines import EngineShelf
from core.lab.worker.loop import JobContext
from core.lab.worker.machine_info import host_record
from core.lab.worker.measure import Progress, decode_repeats

#: A job has 120 s; what has not begun by then is left out.
BUDGET_S: Final = 85.0
#: Context of the timed steps.
CONTEXT: Final = 256
_PHASE: Final = "comparing formats"
#: What a step of this model takes at most where it can be timed at all.
_STEP_S: Final = 0.1
#: Parts of the work before the first format.
_PREPARING: Final = 4


def quality(context: JobContext, payload: dict[str, Any], shelf: EngineShelf) -> dict[str, Any]:
    """Do one comparison and return its record as JSON.

    Raises:
        StopRequestedError: it was cancelled.
        RequestError, FormatError: the request cannot be made.
        CheckpointError: the embedded model is not installed.
    """
    request = QualityRequest.from_json(payload)
    shelf.clear()  # the reference in fp32 needs the room
    return compare_formats(request, context.report, BUDGET_S).to_json()


def compare_formats(request: QualityRequest, report: Progress, budget_s: float) -> QualityRecord:
    """Compare formats.

    Args:
        request: which ones, and on how much text.
        report: told of the progress; what it raises ends the comparison.
        budget_s: formats that have not begun after so long are left out.
    """
    request.validate()
    load, started = LoadProbe(), time.monotonic()
    steps = _Steps(report, _PREPARING + len(request.weights) + len(request.kv))
    engine = _engine(REFERENCE)
    text = public_text()
    cut = windows(engine.text.encode(text.text), request.tokens)
    reference = Reference.read(engine, cut, steps.part)
    steps.done()
    comparison = _Comparison(reference, steps)
    rows = [comparison.row(engine)]
    maps, tensor = _errors(engine, request, cut[0], steps)
    left_out = []
    for weights, kv in _pairs(request):
        if time.monotonic() - started > budget_s:
            left_out.append(weights if kv == REFERENCE else f"{kv} cache")
            continue
        judged = beside_cache(engine, kv) if weights == REFERENCE else _engine(weights)
        rows.append(comparison.row(judged))
    steps.all_done()
    return QualityRecord(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=host_record(engine.device.type),
        request=request,
        model_name=engine.spec.name,
        stored_as=_stored_as(open_checkpoint(EMBEDDED)),
        text_title=f"{text.title} ({text.author}, {text.year})",
        window=WINDOW,
        predicted=sum(len(window) - 1 for window in cut),
        context=CONTEXT,
        rows=tuple(rows),
        maps=tuple(maps),
        tensor=tensor,
        left_out=tuple(left_out),
        noisy=tuple(_noise(load, rows)),
    )


@dataclass(slots=True)
class _Steps:
    """Progress over parts of about the same length, from 0 to 1."""

    report: Callable[[str, float], None]
    total: int
    finished: int = field(default=0)

    def part(self, done: int, of: int) -> None:
        """A part is partly done."""
        self.report(_PHASE, min((self.finished + done / max(of, 1)) / self.total, 1.0))

    def done(self) -> None:
        """A part is done."""
        self.finished += 1
        self.part(0, 1)

    def all_done(self) -> None:
        """Nothing is left."""
        self.finished = self.total
        self.part(0, 1)


@dataclass(frozen=True, slots=True)
class _Comparison:
    reference: Reference
    steps: _Steps

    def row(self, engine: Engine) -> FormatRow:
        """Judge and time one engine."""
        found = evaluate(engine, self.reference, self.steps.part)
        times = decode_repeats(engine, CONTEXT, _STEP_S, lambda _, __: self.steps.part(1, 1))
        self.steps.done()
        return _row(engine, found, times)


def _row(engine: Engine, found: Evaluation, times: tuple[float, ...]) -> FormatRow:
    timed = spread(times) if times else None
    return FormatRow(
        weights=engine.weights,
        kv=engine.kv,
        weight_bytes=stored_bytes(engine.spec, engine.weights),
        cache_bytes_per_token=int(bytes_per_token(engine.spec, engine.kv)),
        step_s=(timed.median_s, timed.p10_s, timed.p90_s) if timed else (),
        nll=found.nll,
        nll_change=found.nll_change,
        nll_change_error=found.nll_change_error,
        kl=found.kl,
        kl_error=found.kl_error,
        kl_worst=found.kl_worst,
        agreement=found.agreement,
    )


def _pairs(request: QualityRequest) -> Iterator[tuple[str, str]]:
    """Each format beside the reference's other half, so that a row tells of one rounding."""
    for weights in request.weights:
        yield weights, REFERENCE
    for kv in request.kv:
        yield REFERENCE, kv


def _engine(weights: str) -> Engine:
    return Engine.load(
        EMBEDDED, weights=weights, kv=REFERENCE, device="cuda" if torch.cuda.is_available() else "cpu"
    )


def _errors(
    engine: Engine, request: QualityRequest, window: list[int], steps: _Steps
) -> tuple[list[MapRecord], TensorRecord]:
    checkpoint = open_checkpoint(EMBEDDED)
    matrix = layer_matrix(checkpoint, request.layer, request.operator).dense().numpy()
    tensor = tensor_record(matrix, request.layer, request.operator)
    steps.done()
    by_format = weight_errors(checkpoint, request.weights, steps.part)
    maps = [_map("weights", name, found) for name, found in by_format.items()]
    steps.done()
    inputs, caches = activation_errors(engine, window, request.kv)
    maps += [_map("inputs", name, found) for name, found in inputs.items()]
    maps += [_map("cache", name, found) for name, found in caches.items()]
    return maps, tensor


def _map(of: str, name: str, found: ErrorMap) -> MapRecord:
    """Rounded to a hundredth of a decibel: a record is read, not computed with."""
    cells = (
        tuple(tuple(None if value is None else round(value, 2) for value in row) for row in table)
        for table in (found.sqnr_db, found.worst_db)
    )
    return MapRecord(of, name, found.columns, *cells)


def _stored_as(checkpoint: Checkpoint) -> tuple[str, str]:
    return layer_matrix(checkpoint, 0, "down").encoding, checkpoint.weights.weight(EMBEDDING).encoding


def _noise(load: LoadProbe, rows: list[FormatRow]) -> Iterator[str]:
    yield from load.stop().reasons()
    wide = [
        f"{row.weights} beside {row.kv}"
        for row in rows
        if row.step_s and (row.step_s[2] - row.step_s[1]) / (2 * row.step_s[0]) > SPREAD_LIMIT
    ]
    if wide:
        yield f"repeated steps scattered for {', '.join(wide)}"
