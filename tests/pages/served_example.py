"""A server that does what the simulator says, in equal steps: records of traces for page tests."""

import json
from collections.abc import Sequence
from typing import Any

from core.analytic.step_record import StepRecord
from core.lab.serve_record import ServedRequest, ServedStep, ServeRecord, Service
from core.lab.serve_request import ServeRequest, Way
from core.simulate.batching import SimulatedStep
from tests.lab import examples

STEP_S = 0.02


def served_step(number: int, step: SimulatedStep) -> ServedStep:
    names = {name: getattr(step, name) for name in ("requests", "reading", "tables", "held_tokens", "now")}
    record = StepRecord(
        index=number,
        kind=step.kind,
        num_sequences=step.num_sequences,
        new_tokens=step.new_tokens,
        context_tokens=step.context_tokens,
        weight_bytes=1,
        kv_read_bytes=1,
        kv_write_bytes=1,
        pages_used=step.pages_used,
        pages_free=step.pages_free,
        device_s=STEP_S,
        host_s=STEP_S,
        num_waiting=step.num_waiting,
        num_preempted=step.num_preempted,
        shared_tokens=step.shared_tokens,
    )
    return ServedStep(record=record, end_s=STEP_S * (number + 1), **names)


def served(request: ServeRequest, way: Way) -> Service:
    """A server that does what the simulator says, in equal steps."""
    steps = tuple(served_step(number, step) for number, step in enumerate(request.simulated(way)))
    requests = []
    for index, arrival in enumerate(request.arrivals()):
        ends = [step.end_s for step in steps if index in step.requests]
        requests.append(ServedRequest(0.0, ends[0], ends[-1], tuple(range(arrival.new_tokens))))
    return Service(way, steps, tuple(requests))


def record_of(payload: dict[str, Any], noisy: Sequence[str] = ()) -> dict[str, Any]:
    request = ServeRequest.from_json(payload)
    record = ServeRecord(
        created_at="2026-01-02T03:04:05+00:00",
        host=examples.record().host,
        request=request,
        model_name="A model",
        services=tuple(served(request, way) for way in request.ways),
        noisy=tuple(noisy),
    )
    return json.loads(json.dumps(record.to_json()))  # type: ignore[no-any-return]
