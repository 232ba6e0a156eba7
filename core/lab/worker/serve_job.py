"""Serving a trace with the engine: every step with the pages behind it, every request with its times.

One engine serves all ways, one after the other, so that they differ in the policy and the cache only.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from core.analytic.batching_policy import POLICIES
from core.analytic.step_record import StepRecord
from core.engine.engine import Engine
from core.engine.records import Request, TokenEvent
from core.engine.run import Run
from core.engine.scheduler import Serving
from core.engine.server import Server
from core.engine.speculation import NGramSpeculator
from core.errors import RequestError
from core.lab.host import LoadProbe
from core.lab.serve_record import ServedRequest, ServedStep, ServeRecord, Service
from core.lab.serve_request import PagedCache, ServeRequest, Way
from core.lab.worker.engines import EngineShelf, Wanted, settle
from core.lab.worker.loop import JobContext, Report
from core.lab.worker.machine_info import host_record
from core.simulate.batching import Arrival

#: Token ids of prompts begin here, behind the special ones.
_FIRST_ID: Final = 100


def serve_trace(context: JobContext, payload: dict[str, Any], shelf: EngineShelf) -> dict[str, Any]:
    """Serve a trace and return its record as JSON.

    Raises:
        StopRequestedError: it was cancelled.
        RequestError, FormatError: the request does not hold, or its model is none that a page may ask for.
        CheckpointError: the embedded model is not installed.
    """
    request = ServeRequest.from_json(payload)
    wanted = Wanted(request.model, request.weights, request.kv, "paged")
    engine = shelf.take(wanted, warm_up=settle)
    return serve(engine, request, context.report).to_json()


def serve(engine: Engine, request: ServeRequest, report: Report) -> ServeRecord:
    """Serve a trace in each of its ways.

    Args:
        engine: with the model and the formats of the request.
        request: the trace, and how it is served.
        report: told of the progress; what it raises ends the serving.

    Raises:
        RequestError: the request does not hold.
    """
    request.validate()
    if request.longest > engine.max_context:
        raise RequestError(
            f"A request must fit the model's context of {engine.max_context:,} tokens; one may grow to "
            f"{request.longest:,}. Ask for shorter ones."
        )
    load = LoadProbe()
    services = [
        _serve(engine, request, way, _part_of(report, number, len(request.ways)))
        for number, way in enumerate(request.ways)
    ]
    return ServeRecord(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=host_record(engine.device.type),
        request=request,
        model_name=engine.spec.name,
        services=tuple(services),
        noisy=tuple(load.stop().reasons()),
    )


def _part_of(report: Report, number: int, ways: int) -> Report:
    """Progress of one way as progress of all."""
    return lambda phase, fraction: report(phase, (number + (fraction or 0.0)) / ways)


def prompts(request: ServeRequest, vocab_size: int) -> list[list[int]]:
    """The token ids of every prompt: the shared beginning, then tokens whose first no other request has."""
    room = vocab_size - _FIRST_ID
    draw = random.Random(request.trace.seed)  # noqa: S311 - a trace, not a secret
    shared = [_FIRST_ID + draw.randrange(room) for _ in range(request.trace.shared_tokens)]
    return [
        [
            *shared,
            _FIRST_ID + index,
            *(
                _FIRST_ID + draw.randrange(room)
                for _ in range(arrival.prompt_tokens - arrival.shared_tokens - 1)
            ),
        ]
        for index, arrival in enumerate(request.arrivals())
    ]


@dataclass(slots=True)
class _Clock:
    """Seconds since the serving began."""

    start_s: float = field(default_factory=time.perf_counter)

    def now_s(self) -> float:
        return time.perf_counter() - self.start_s


def _serve(engine: Engine, request: ServeRequest, way: Way, report: Report) -> Service:
    arrivals, batching, guesses = request.arrivals(), request.batching(way), request.guesses_of(way)
    serving = Serving(
        POLICIES[way.policy],
        request.places_of(way),
        way.step_tokens,
        cache_tokens=batching.num_pages * batching.page_tokens,
        share=request.share,
        speculator=NGramSpeculator(guesses) if guesses else None,
    )
    clock = _Clock()
    token_times_s: list[list[float]] = [[] for _ in arrivals]
    with _laid_out(engine, way.cache, request.page_tokens):
        server = engine.server(serving, request.longest)
        server.watch = watcher = _Watcher(server, clock)
        try:
            every = zip(prompts(request, engine.spec.vocab_size), arrivals, token_times_s, strict=True)
            for ids, arrival, times_s in every:
                server.submit(_request(ids, arrival, _note(times_s, clock)))
            _run(server, sum(arrival.new_tokens for arrival in arrivals), token_times_s, report)
        finally:
            server.close()
    return Service(way, tuple(watcher.steps), tuple(_served(server.runs, token_times_s)))


def _request(ids: list[int], arrival: Arrival, on_token: Callable[[TokenEvent], None]) -> Request:
    """A request whose answer ends at its length and at no end token."""
    return Request(ids, arrival.new_tokens, end_tokens=frozenset(), arrival=arrival.step, on_token=on_token)


def _run(server: Server, tokens: int, token_times_s: list[list[float]], report: Report) -> None:
    while not server.is_done:
        server.step()
        # What the report raises ends the serving between two steps.
        report("serving", sum(map(len, token_times_s)) / tokens)


def _note(times_s: list[float], clock: _Clock) -> Callable[[TokenEvent], None]:
    return lambda _: times_s.append(clock.now_s())


def _served(runs: list[Run], token_times_s: list[list[float]]) -> Iterator[ServedRequest]:
    for run, times_s in zip(runs, token_times_s, strict=True):
        generation = run.finish()
        arrival_s = max(times_s[0] - (generation.ttft_s or 0.0), 0.0)
        yield ServedRequest(arrival_s, times_s[0], times_s[-1], tuple(generation.token_ids))


class _Watcher:
    """Writes down, after each step, who took part and who holds which pages."""

    def __init__(self, server: Server, clock: _Clock) -> None:
        self.steps: list[ServedStep] = []
        self._server, self._clock = server, clock

    def __call__(self, record: StepRecord, took_part: list[Run], holders: list[Run]) -> None:
        number = {id(run): index for index, run in enumerate(self._server.runs)}
        self.steps.append(
            ServedStep(
                record=record,
                now=self._server.now - 1,
                end_s=self._clock.now_s(),
                requests=tuple(number[id(run)] for run in took_part),
                reading=tuple(number[id(run)] for run in took_part if run.is_reading),
                tables=tuple((number[id(run)], tuple(run.sequence.table.pages)) for run in holders),
                held_tokens=tuple((number[id(run)], run.sequence.num_cached) for run in holders),
            )
        )


@contextmanager
def _laid_out(engine: Engine, cache: PagedCache, page_tokens: int) -> Iterator[None]:
    """The engine with another layout of its cache, and nothing left in it from before."""
    kind, size = engine.cache, engine.page_tokens
    engine.cache, engine.page_tokens = cache, page_tokens
    engine.reserve(1)  # pages that an earlier trace has filled are forgotten
    try:
        yield
    finally:
        engine.cache, engine.page_tokens = kind, size
