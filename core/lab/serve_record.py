"""What became of a served trace: every step with its pages, every request with its times and tokens.

The simulator's steps are never stored: whoever reads a record counts them anew and holds them against
what was served, so "equal to the simulator" is found out and not claimed.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.analytic.step_record import StepRecord
from core.errors import RecordError, UserError
from core.lab.checked_json import Reader, utc_time
from core.lab.record_parts import HostRecord
from core.lab.serve_predict import predicted_steps
from core.lab.serve_request import ServeRequest, Way
from core.lab.step_json import step_from_json, step_to_json
from core.simulate.batching import SimulatedStep, Tables

_WHAT: Final = "A served trace"
#: What simulator and engine must agree on in each step, by name in both.
COUNTS: Final = (
    "kind",
    "num_sequences",
    "new_tokens",
    "context_tokens",
    "pages_used",
    "pages_free",
    "num_waiting",
    "num_preempted",
    "shared_tokens",
)


@dataclass(frozen=True, slots=True)
class ServedStep:
    """One step as the engine took it; what it shares with ``SimulatedStep`` has the same names.

    Attributes:
        record: counts and times. now: when it ran, in steps. end_s: when it ended, from the beginning.
        requests: who took part. reading: who of them read a prompt, or computed again.
        tables: the pages of those who held some. held_tokens: the tokens in these pages.
    """

    record: StepRecord
    now: int
    end_s: float
    requests: tuple[int, ...]
    reading: tuple[int, ...]
    tables: Tables
    held_tokens: tuple[tuple[int, int], ...]

    def differs(self, other: SimulatedStep) -> str:
        """The first thing that the simulator has otherwise; empty where there is none."""
        for name in COUNTS:
            mine, theirs = getattr(self.record, name), getattr(other, name)
            if mine != theirs:
                return f"{name} is {mine}, simulated {theirs}"
        for name in ("now", "requests", "reading", "tables", "held_tokens"):
            if getattr(self, name) != getattr(other, name):
                return f"{name} differ"
        return ""


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """One request: when it came, when its first and its last token were there, and its tokens; seconds."""

    arrival_s: float
    first_s: float
    last_s: float
    token_ids: tuple[int, ...]

    @property
    def ttft_s(self) -> float:
        """From its arrival to its first token."""
        return max(self.first_s - self.arrival_s, 0.0)

    @property
    def tpot_s(self) -> float | None:
        """(last token - first token) / (n - 1); None for a single token."""
        later = len(self.token_ids) - 1
        return (self.last_s - self.first_s) / later if later else None


@dataclass(frozen=True, slots=True)
class Service:
    """The trace, served in one way, and what was predicted before: the seconds of each simulated step."""

    way: Way
    steps: tuple[ServedStep, ...]
    requests: tuple[ServedRequest, ...]
    predicted_step_s: tuple[float, ...] = ()

    @property
    def wall_s(self) -> float:
        """From the first step's beginning to the last one's end."""
        return self.steps[-1].end_s

    @property
    def new_tokens(self) -> int:
        """Tokens of all answers."""
        return sum(len(request.token_ids) for request in self.requests)

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens a second, over all requests."""
        return self.new_tokens / self.wall_s

    @property
    def decode_step_s(self) -> float | None:
        """The median wall time of a step in which everybody writes; None where there was none."""
        times_s = [step.record.host_s for step in self.steps if step.record.kind == "decode"]
        return statistics.median(times_s) if times_s else None


@dataclass(frozen=True, slots=True)
class ServeRecord:
    """A trace and what became of it in each way.

    Attributes:
        created_at: ISO time, UTC. noisy: why its times are not to be trusted; its counts always are.
    """

    created_at: str
    host: HostRecord
    request: ServeRequest
    model_name: str
    services: tuple[Service, ...]
    noisy: tuple[str, ...] = ()

    @property
    def equal_outputs(self) -> bool:
        """Whether every request has the same tokens, however it was served."""
        first = [request.token_ids for request in self.services[0].requests]
        return all([r.token_ids for r in service.requests] == first for service in self.services)

    @property
    def unequal_requests(self) -> tuple[int, ...]:
        """The requests whose tokens differ between two ways."""
        by_request = zip(*(service.requests for service in self.services), strict=True)
        return tuple(i for i, ways in enumerate(by_request) if len({r.token_ids for r in ways}) > 1)

    def difference(self, service: Service) -> str:
        """The first thing in which a service is not what the simulator counts; empty where all is equal."""
        simulated = self.request.simulated(service.way)
        if len(simulated) != len(service.steps):
            return f"{len(service.steps)} steps, simulated {len(simulated)}"
        for number, (step, other) in enumerate(zip(service.steps, simulated, strict=True)):
            if said := step.differs(other):
                return f"step {number}: {said}"
        return ""

    @property
    def equal_to_simulator(self) -> bool | None:
        """Whether every step of every service is the simulator's, page for page; None with guesses."""
        if self.request.guesses:
            return None
        return not any(self.difference(service) for service in self.services)

    def to_json(self) -> dict[str, Any]:
        """A plain object."""
        return {
            "created_at": self.created_at,
            "host": asdict(self.host),
            "request": self.request.to_json(),
            "model_name": self.model_name,
            "services": [_service_to_json(service) for service in self.services],
            "noisy": list(self.noisy),
        }

    @classmethod
    def from_json(cls, data: object) -> ServeRecord:
        """Read a record back.

        Raises:
            RecordError: a part is missing, is another thing, or does not fit the request.
        """
        reader = Reader(data, _WHAT)
        try:
            request = ServeRequest.from_json(reader.data.get("request"))
        except UserError as fault:
            raise RecordError(f"{_WHAT} must hold its request; {fault}") from fault
        services = reader.objects("services")
        if len(services) != len(request.ways):
            reader.refuse("services", "one for each way")
        return cls(
            created_at=utc_time(reader, "created_at"),
            host=HostRecord.from_reader(reader.inner("host")),
            request=request,
            model_name=reader.text("model_name"),
            services=tuple(
                _service(service, request, way) for service, way in zip(services, request.ways, strict=True)
            ),
            noisy=reader.texts("noisy"),
        )


def _service_to_json(service: Service) -> dict[str, Any]:
    before: dict[int, tuple[int, ...]] = {}
    steps = []
    for step in service.steps:
        tables = dict(step.tables)
        steps.append(
            {
                "record": step_to_json(step.record),
                "now": step.now,
                "end_s": step.end_s,
                "requests": list(step.requests),
                "reading": list(step.reading),
                "holders": [request for request, _ in step.tables],
                "held_tokens": [tokens for _, tokens in step.held_tokens],
                "changes": [
                    {"request": request, **_change(before.get(request, ()), pages)}
                    for request, pages in step.tables
                    if pages != before.get(request, ())
                ],
            }
        )
        before = tables
    requests = [asdict(request) for request in service.requests]
    return {"steps": steps, "requests": requests, "predicted_step_s": list(service.predicted_step_s)}


def _change(before: tuple[int, ...], now: tuple[int, ...]) -> dict[str, Any]:
    """How a block table changed since the step before: what is kept at its front, and what follows."""
    keep = 0
    while keep < min(len(before), len(now)) and before[keep] == now[keep]:
        keep += 1
    return {"keep": keep, "added": list(now[keep:])}


def _service(reader: Reader, request: ServeRequest, way: Way) -> Service:
    arrivals, num_pages = request.arrivals(), request.batching(way).num_pages
    served = [_served(entry) for entry in reader.objects("requests")]
    if [len(one.token_ids) for one in served] != [arrival.new_tokens for arrival in arrivals]:
        reader.refuse("requests", "every token of every answer")
    steps: list[ServedStep] = []
    before: dict[int, tuple[int, ...]] = {}
    for entry in reader.objects("steps"):
        before = _tables(entry, before, len(arrivals), num_pages)
        steps.append(_step(entry, before, len(arrivals)))
    if not steps:
        reader.refuse("steps", "one step or more")
    return Service(way, tuple(steps), tuple(served), predicted_steps(reader, request, way))


def _served(reader: Reader) -> ServedRequest:
    arrival_s, first_s, last_s = (reader.number(name, 0, 1e6) for name in ("arrival_s", "first_s", "last_s"))
    return ServedRequest(arrival_s, first_s, last_s, _wholes(reader, "token_ids", 1e9))


def _step(reader: Reader, tables: dict[int, tuple[int, ...]], requests: int) -> ServedStep:
    try:
        record = step_from_json(reader.data.get("record"))
    except ValueError as fault:
        reader.refuse("record", f"a step ({fault})")
    held = _wholes(reader, "held_tokens", 1e9)
    if len(held) != len(tables):
        reader.refuse("held_tokens", "a number for each holder")
    return ServedStep(
        record=record,
        now=reader.whole("now"),
        end_s=reader.number("end_s", 1e-9, 1e6),
        requests=_wholes(reader, "requests", requests - 1),
        reading=_wholes(reader, "reading", requests - 1),
        tables=tuple(tables.items()),
        held_tokens=tuple(zip(tables, held, strict=True)),
    )


def _tables(
    reader: Reader, before: dict[int, tuple[int, ...]], requests: int, num_pages: int
) -> dict[int, tuple[int, ...]]:
    """The block tables of a step, from those of the step before and what changed."""
    changed = {}
    for change in reader.objects("changes"):
        request = change.whole("request", 0, requests - 1)
        kept = before.get(request, ())[: change.whole("keep")]
        changed[request] = kept + _wholes(change, "added", num_pages - 1)
    holders = _wholes(reader, "holders", requests - 1)
    return {request: changed.get(request, before.get(request, ())) for request in holders}


def _wholes(reader: Reader, name: str, high: float) -> tuple[int, ...]:
    values = reader.numbers(name, 0, high)
    if any(value != int(value) for value in values):
        reader.refuse(name, "whole numbers")
    return tuple(int(value) for value in values)
