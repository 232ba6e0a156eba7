"""What becomes of each request, step by step: it waits, reads, writes, or loses its pages to others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.simulate.batching import Arrival
from core.simulate.seats import Doing, Step, doing_of


@dataclass(frozen=True, slots=True)
class Span:
    """A request does the same from one step to another; ``last`` is included."""

    request: int
    first: int
    last: int
    doing: Doing


@dataclass(frozen=True, slots=True)
class RequestLanes:
    """A trace by request.

    Attributes:
        requests: how many. steps: from the first to the last, those included in which nobody ran.
        spans: what each does from its arrival to its last token, by request.
        lost: a request and the step before which it lost its pages, so that it had to start again.
    """

    requests: int
    steps: int
    spans: tuple[Span, ...]
    lost: tuple[tuple[int, int], ...]


def request_lanes(steps: Sequence[Step], trace: Sequence[Arrival]) -> RequestLanes:
    """Follow each request through the steps.

    >>> from core.simulate.batching import Batching, simulate
    >>> trace = [Arrival(2, 3), Arrival(2, 1)]
    >>> lanes = request_lanes(simulate(trace, Batching(9, 2, max_sequences=1)), trace)
    >>> [(s.request, s.first, s.last, s.doing) for s in lanes.spans]
    [(0, 0, 0, 'reads'), (0, 1, 2, 'writes'), (1, 0, 2, 'waits'), (1, 3, 3, 'reads')]
    """
    by_time = {step.now: step for step in steps}
    ends = {request: step.now for step in steps for request in step.requests}
    spans: list[Span] = []
    for request, arrival in enumerate(trace):
        times = range(arrival.step, ends.get(request, arrival.step - 1) + 1)
        spans += _spans(request, ((now, _doing(by_time.get(now), request)) for now in times))
    last = steps[-1].now + 1 if steps else 0
    return RequestLanes(len(trace), last, tuple(spans), tuple(_lost(steps, ends)))


def _doing(step: Step | None, request: int) -> Doing:
    return "waits" if step is None else doing_of(step, request)


def _spans(request: int, moments: Iterable[tuple[int, Doing]]) -> list[Span]:
    """Steps in a row in which it does the same, together."""
    found: list[Span] = []
    for now, doing in moments:
        if found and found[-1].doing == doing:
            found[-1] = Span(request, found[-1].first, now, doing)
        else:
            found.append(Span(request, now, now, doing))
    return found


def _lost(steps: Sequence[Step], ends: dict[int, int]) -> list[tuple[int, int]]:
    """Who held pages in one step and none in the next, though it was not done."""
    lost = []
    holders: set[int] = set()
    for step in steps:
        now_holding = {request for request, _ in step.tables}
        lost += [(r, step.now) for r in sorted(holders - now_holding) if ends.get(r, -1) >= step.now]
        holders = now_holding
    return lost
