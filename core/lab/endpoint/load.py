"""The load: warm up, then for each concurrency a closed loop of seeded prompts, every answer timed.

One event loop does all of it, so that a hundred requests at once cost no threads. What can be found out
before anything is measured (no server, wrong model, no stream) is raised as one sentence; what befalls a
single request later stands in its row, and the others go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from core.errors import EndpointError
from core.lab.endpoint import sentences
from core.lab.endpoint.client import EndpointClient
from core.lab.endpoint.prediction import EndpointPrediction
from core.lab.endpoint.prompts import Words, learn, prompt
from core.lab.endpoint.record import ClientRecord, EndpointRecord, ServerRecord
from core.lab.endpoint.request import EndpointRequest
from core.lab.endpoint.row import Level, Row

#: Called with what is under way, and the share of all requests that have ended.
Progress = Callable[[str, float | None], None]

_WARM_TOKENS: Final = 8
_ROUND_TRIPS: Final = 3
_WATCH_S: Final = 0.01
_MOST_WATCHED: Final = 20_000
_MODELS_KEPT: Final = 50
#: Prompts of warm-up requests have indices of their own.
_WARM_UP: Final = 10**6


async def measure(
    request: EndpointRequest,
    key: str = "",
    prediction: EndpointPrediction | None = None,
    progress: Progress = lambda _phase, _share: None,
) -> EndpointRecord:
    """Measure a server.

    A cancellation of the task, and the end of the run's time, end it early; what was answered by then is
    kept in the record, which says so.

    Args:
        request: the load.
        key: for the server; it is in no record.
        prediction: for the same load, made before.
        progress: told what is under way.

    Raises:
        RequestError: a limit does not hold.
        EndpointError: the server does not do what it must, or the run ended before anything was answered.
    """
    request.validate()
    run = _Run(request, progress)
    ended = "complete"
    async with EndpointClient(request, key) as client:
        watch = asyncio.ensure_future(_watch(run.late_s))
        try:
            async with asyncio.timeout(request.run_s):
                await run.get_ready(client)
                for concurrency in request.levels:
                    await _open_connections(client, concurrency)
                    await run.level(client, concurrency)
        except asyncio.CancelledError:
            ended = "stopped"
            if not run.answered:
                raise
        except TimeoutError:
            ended = "out of time"
        finally:
            watch.cancel()
    if not run.answered:
        raise EndpointError(run.nothing())
    return run.record(prediction, ended)


@dataclass(slots=True)
class _Run:
    """What a measurement has found out so far."""

    request: EndpointRequest
    progress: Progress
    model: str = ""
    words: Words = field(default_factory=Words)
    server: ServerRecord | None = None
    levels: dict[int, list[Row]] = field(default_factory=dict)
    late_s: list[float] = field(default_factory=list)

    @property
    def ended(self) -> int:
        """Requests that were answered or failed."""
        return sum(map(len, self.levels.values()))

    @property
    def answered(self) -> int:
        """Requests that were answered."""
        return sum(not row.error for rows in self.levels.values() for row in rows)

    async def get_ready(self, client: EndpointClient) -> None:
        """Ask what the server serves, and warm it up with the sizes that will be measured."""
        self.progress("asking the server", None)
        known = await client.models()
        self.model = chosen(self.request, known)
        self.progress("warming up", None)
        await self._learn_words(client)
        round_trip_s = None if known is None else await _round_trip_s(client)
        self.server = ServerRecord(
            client.server, self.model, (known or ())[:_MODELS_KEPT], round_trip_s, self.words.each
        )

    async def _learn_words(self, client: EndpointClient) -> None:
        """Two warm-up requests, of half the words and of as many words as tokens are asked for."""
        seen = []
        tokens = min(self.request.output_tokens, _WARM_TOKENS)
        for index, words in enumerate((max(self.request.prompt_tokens // 2, 1), self.request.prompt_tokens)):
            text = prompt(self.request.seed, _WARM_UP + index, words)
            answer = await client.complete(text, self.model, tokens)
            seen.append((words, answer.read))
        (few, few_tokens), (many, many_tokens) = seen
        if few_tokens is not None and many_tokens is not None:
            self.words = learn((few, few_tokens), (many, many_tokens))

    async def level(self, client: EndpointClient, concurrency: int) -> None:
        """A closed loop: so many requests are always under way until all have been sent."""
        rows: list[Row] = []
        self.levels[concurrency] = rows
        first = list(self.request.levels).index(concurrency) * self.request.requests
        waiting = iter(range(first, first + self.request.requests))
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._one_after_another(client, waiting, start, rows))

    async def _one_after_another(
        self, client: EndpointClient, waiting: Iterator[int], start: float, rows: list[Row]
    ) -> None:
        words = self.words.of(self.request.prompt_tokens)
        for index in waiting:
            text = prompt(self.request.seed, index, words)
            began_s = time.perf_counter() - start
            try:
                answer = await client.complete(text, self.model, self.request.output_tokens)
                rows.append(Row.from_answer(began_s, answer))
            except EndpointError as problem:
                rows.append(Row(start_s=round(began_s, 6), error=str(problem)))
            total = len(self.request.levels) * self.request.requests
            self.progress(f"{len(self.levels)} of {len(self.request.levels)} levels", self.ended / total)

    def nothing(self) -> str:
        """Why there is not one answer."""
        errors = [row.error for rows in self.levels.values() for row in rows if row.error]
        if errors:
            return errors[0]
        return (
            f"A run must be given the time for one answer; {self.request.host} gave none in time. Ask for "
            "fewer tokens, or allow more time."
        )

    def record(self, prediction: EndpointPrediction | None, ended: str) -> EndpointRecord:
        """Everything, as it is kept."""
        assert self.server is not None  # noqa: S101 (something was answered, so the server was asked)
        levels = ((level, sorted(rows, key=lambda row: row.start_s)) for level, rows in self.levels.items())
        late_s = float(np.percentile(self.late_s, 99)) if self.late_s else None
        return EndpointRecord(
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            client=ClientRecord.here(),
            server=self.server,
            request=replace(self.request.public(), model=self.model),
            prediction=prediction,
            levels=tuple(Level(level, tuple(rows)) for level, rows in levels if rows),
            ended=ended,
            client_late_p99_s=late_s,
        )


def chosen(request: EndpointRequest, known: tuple[str, ...] | None) -> str:
    """The model to ask for: the named one, or the only one that a server lists.

    Raises:
        EndpointError: it is not listed, or none is named and there is not exactly one.

    >>> chosen(EndpointRequest(), ("llama",))
    'llama'
    """
    if known and request.model and request.model not in known:
        raise EndpointError(sentences.wrong_model(request.model, known, request))
    if request.model:
        return request.model
    if known is None or len(known) != 1:
        raise EndpointError(sentences.no_model(known, request))
    return known[0]


async def _open_connections(client: EndpointClient, count: int) -> None:
    """So that no measured request waits for a handshake; one that fails tells it again when it counts."""
    await asyncio.gather(*(client.models() for _ in range(count)), return_exceptions=True)


async def _round_trip_s(client: EndpointClient) -> float:
    """The shortest of some requests that ask for next to nothing."""
    times_s = []
    for _ in range(_ROUND_TRIPS):
        start = time.perf_counter()
        await client.models()
        times_s.append(time.perf_counter() - start)
    return min(times_s)


async def _watch(late_s: list[float]) -> None:
    """Note how late this very loop wakes up, all the time."""
    while len(late_s) < _MOST_WATCHED:
        due = time.perf_counter() + _WATCH_S
        await asyncio.sleep(_WATCH_S)
        late_s.append(max(time.perf_counter() - due, 0.0))
