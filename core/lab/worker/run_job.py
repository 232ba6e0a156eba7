"""One visitor's run: predict, generate in sight, then measure what was seen.

Order matters. The first token must appear soon after Run is pressed, so before it there is only a
short rehearsal and a check of the machine's pace; repeats and the profile by operator come after the
last token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from core.engine.engine import Engine
from core.engine.records import Generation, TokenEvent
from core.engine.sampling import Sampling
from core.lab.host import LoadProbe
from core.lab.noise import noise
from core.lab.predict import predict
from core.lab.record import RunRecord
from core.lab.request import SHAPE_PREFIX, RunRequest
from core.lab.sweep_request import Cell
from core.lab.worker.loop import JobContext
from core.lab.worker.machine_info import host_record
from core.lab.worker.measure import measure
from core.lab.worker.outlook import Checks


@dataclass(frozen=True, slots=True)
class Bench:
    """Where runs are done: a device, and the checks before each run with its calibration."""

    device: str
    checks: Checks


def run(context: JobContext, request: RunRequest, engine: Engine, bench: Bench) -> dict[str, Any]:
    """Do one run and return its record as JSON.

    Raises:
        StopRequestedError: it was cancelled.
        RequestError: the prompt and the answer do not fit the model's context.
    """
    ids = engine.encode(request.prompt, raw=request.raw)
    context.report("rehearsing")
    checks, load = bench.checks, LoadProbe()
    # What cannot be predicted is refused before anybody waits for a rehearsal.
    predict(request, len(ids), engine.spec, checks.calibration.machine(request.weights))
    seen = checks.outlook(_cell_of(request, len(ids)), context)
    prediction = predict(request, len(ids), engine.spec, seen.now.machine(request.weights), seen.rehearsed)
    context.report("writing", 0.0)
    generation = _generate(context, request, engine, ids)
    measured = measure(engine, generation, context.report)
    after = checks.memory.pace(seen.before)
    record = RunRecord(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=host_record(bench.device),
        calibration=checks.calibration,
        request=request,
        model_name=engine.spec.name,
        seeded_weights=request.model.startswith(SHAPE_PREFIX),
        kernels=dict(engine.kernels),
        prediction=prediction,
        text=generation.text,
        stop_reason=generation.stop_reason,
        steps=generation.steps,
        measured=measured,
        load=seen.load(load.stop(), after),
    )
    reasons = noise(record.load, record.step_spread, record.decode_spread, checks.calibration.pace)
    return replace(record, noisy=reasons).to_json()


def _cell_of(request: RunRequest, prompt_tokens: int) -> Cell:
    """What is rehearsed for a run."""
    return Cell(
        request.model, request.weights, request.kv, request.cache, 1, prompt_tokens, request.max_tokens
    )


def _generate(context: JobContext, request: RunRequest, engine: Engine, ids: list[int]) -> Generation:
    def stream(event: TokenEvent) -> None:
        context.step(event.text_delta, event.step)

    generation = engine.generate(
        ids,
        Sampling(request.temperature, request.top_k, request.top_p, request.seed),
        max_tokens=request.max_tokens,
        on_token=stream,
        should_stop=context.should_stop,
        # A bare text is continued; only an answer in the chat template has an end.
        end_tokens=frozenset() if request.raw else None,
    )
    context.check()
    return generation
