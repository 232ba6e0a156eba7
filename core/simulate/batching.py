"""Batching in whole numbers: which requests share which steps, and which pages they hold.

The same trace, policy and memory give the same steps as the engine takes, count for count and page for
page; only times are not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from core.analytic.batching_policy import Continuous, Policy, Queue
from core.analytic.step_record import PREFILL_TOKENS, StepKind
from core.errors import RequestError
from core.simulate.paging import SHARED, Content, Held, Pages

#: The pages of each request that holds some, by its index.
Tables = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request of a trace: its prompt, its answer (1 token or more), and the step before which it comes.

    ``shared_tokens`` of its prompt are the same for all requests, and what follows is its own.
    """

    prompt_tokens: int
    new_tokens: int
    step: int = 0
    shared_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Batching:
    """How requests share steps and memory.

    Attributes:
        num_pages, page_tokens: the cache; one page for a whole sequence is a contiguous cache.
        policy: when those that wait may join. max_sequences: the most that may run at once.
        step_tokens: the most tokens that a step computes.
        share: look for pages that already hold the beginning of a request, as ``Serving.share``.
    """

    num_pages: int
    page_tokens: int
    policy: Policy = field(default_factory=Continuous)
    max_sequences: int = 8
    step_tokens: int = PREFILL_TOKENS
    share: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """What a ``StepRecord`` counts, under the same names, and the time of the step in steps.

    Attributes:
        now: when it ran; steps in which nobody could run are left out. requests: who took part, as
            indices into the trace. reading: those of them who read a prompt, or compute again.
        tables: the pages of each request that holds some, by index; its block table.
        held_tokens: tokens that lie in these pages at the end of the step, by index.
    """

    now: int
    kind: StepKind
    requests: tuple[int, ...]
    new_tokens: int
    context_tokens: int
    pages_used: int
    pages_free: int
    num_waiting: int
    num_preempted: int
    shared_tokens: int = 0
    reading: tuple[int, ...] = ()
    tables: Tables = ()
    held_tokens: tuple[tuple[int, int], ...] = ()

    @property
    def num_sequences(self) -> int:
        """Sequences in the step."""
        return len(self.requests)


@dataclass(slots=True)
class _Request:
    index: int
    arrival: Arrival
    cached: int = 0
    written: int = 0
    held: Held = field(default_factory=Held)
    recomputes: bool = False

    @property
    def pending(self) -> int:
        return self.arrival.prompt_tokens + self.written - self.cached

    @property
    def is_reading(self) -> bool:
        return self.recomputes or not self.written

    def contents(self, tokens: int, page_tokens: int) -> list[Content]:
        """What its full pages hold, among its first ``tokens``."""
        shared = self.arrival.shared_tokens // page_tokens
        return [(SHARED if place < shared else self.index, place) for place in range(tokens // page_tokens)]


def simulate(
    trace: Sequence[Arrival], batching: Batching, most_steps: int | None = None
) -> list[SimulatedStep]:
    """The steps that serve a trace.

    Args:
        trace: the requests, in the order in which they queue where they come at once.
        batching: policy and memory.
        most_steps: go no further than this; to the end if None.

    Raises:
        RequestError: a request does not fit the cache by itself.

    >>> steps = simulate([Arrival(4, 3), Arrival(2, 1, step=1)], Batching(num_pages=8, page_tokens=2))
    >>> [(step.kind, step.num_sequences, step.pages_used) for step in steps]
    [('prefill', 1, 2), ('mixed', 2, 4), ('decode', 1, 3)]
    """
    _check(trace, batching)
    return list(islice(_Simulation(trace, batching).steps(), most_steps))


class _Simulation:
    def __init__(self, trace: Sequence[Arrival], batching: Batching) -> None:
        self.batching = batching
        requests = [_Request(index, arrival) for index, arrival in enumerate(trace)]
        self.coming = deque(sorted(requests, key=lambda request: request.arrival.step))
        self.waiting: deque[_Request] = deque()
        self.running: list[_Request] = []
        self.pages = Pages(batching.num_pages, batching.page_tokens)

    def steps(self) -> Iterator[SimulatedStep]:
        now = 0
        while self.coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                now = max(now, self.coming[0].arrival.step)
            while self.coming and self.coming[0].arrival.step <= now:
                self.waiting.append(self.coming.popleft())
            opens = self.batching.policy.admits(self._queue(now))
            work, preempted = self._continue()
            shared = self._admit(work) if opens and not preempted else 0
            if work:
                yield self._step(now, work, preempted, shared)
                self._commit(work)
            now += 1

    def _queue(self, now: int) -> Queue:
        waited = now - self.waiting[0].arrival.step if self.waiting else 0
        size = self.batching.max_sequences
        return Queue(len(self.waiting), len(self.running), waited, size, bool(self.coming))

    def _continue(self) -> tuple[dict[int, tuple[_Request, int]], int]:
        """Tokens for those that run, oldest first; the youngest make room where pages are missing."""
        work: dict[int, tuple[_Request, int]] = {}
        budget, preempted, place = self.batching.step_tokens, 0, 0
        while place < len(self.running) and budget:
            request = self.running[place]
            tokens = min(request.pending, budget)
            if self._hold(request, tokens):
                work[request.index] = request, tokens
                budget -= tokens
                place += 1
            else:
                victim = self.running.pop()
                self.pages.release(victim.held)
                victim.cached = 0
                victim.recomputes = True
                self.waiting.appendleft(victim)
                preempted += 1
        return work, preempted

    def _admit(self, work: dict[int, tuple[_Request, int]]) -> int:
        """Let those that wait in while there is room; the tokens that they found in others' pages."""
        budget = self.batching.step_tokens - sum(tokens for _, tokens in work.values())
        shared = 0
        while self.waiting and budget and len(self.running) < self.batching.max_sequences:
            request = self.waiting[0]
            if self.batching.share:  # the last token is left out, since what follows it is wanted
                known = request.contents(request.pending - 1, self.batching.page_tokens)
                request.cached = self.pages.match(request.held, known)
            tokens = min(request.pending, budget)
            if not self._hold(request, tokens):
                self.pages.release(request.held)
                request.cached = 0
                break
            self.running.append(self.waiting.popleft())
            work[request.index] = request, tokens
            budget -= tokens
            shared += request.cached
        return shared

    def _hold(self, request: _Request, tokens: int) -> bool:
        """Give a request the pages for so many more tokens, if they are free."""
        return self.pages.extend(request.held, request.cached + tokens)

    def _step(
        self, now: int, work: dict[int, tuple[_Request, int]], preempted: int, shared: int
    ) -> SimulatedStep:
        reading = {request.is_reading for request, _ in work.values()}
        free = self.pages.num_free
        return SimulatedStep(
            now=now,
            kind="mixed" if len(reading) > 1 else "prefill" if True in reading else "decode",
            requests=tuple(work),
            new_tokens=sum(tokens for _, tokens in work.values()),
            context_tokens=sum(request.cached + tokens for request, tokens in work.values()),
            pages_used=self.batching.num_pages - free,
            pages_free=free,
            num_waiting=len(self.waiting),
            num_preempted=preempted,
            shared_tokens=shared,
            reading=tuple(index for index, (request, _) in work.items() if request.is_reading),
            tables=tuple((request.index, tuple(request.held.pages)) for request in self.running),
            held_tokens=tuple(
                (request.index, request.cached + (work[request.index][1] if request.index in work else 0))
                for request in self.running
            ),
        )

    def _commit(self, work: dict[int, tuple[_Request, int]]) -> None:
        for request, tokens in work.values():
            request.cached += tokens
            self.pages.publish(request.held, request.contents(request.cached, self.batching.page_tokens))
            if request.pending:
                continue
            request.written += 1
            request.recomputes = False
            if request.written == request.arrival.new_tokens:
                self.running.remove(request)
                self.pages.release(request.held)


def _check(trace: Sequence[Arrival], batching: Batching) -> None:
    sizes = (batching.num_pages, batching.page_tokens, batching.max_sequences, batching.step_tokens)
    if min(sizes) < 1 or any(min(arrival.prompt_tokens, arrival.new_tokens) < 1 for arrival in trace):
        raise RequestError(
            "Pages, tokens and sequences of a simulation must be 1 or more; some are not. Correct them."
        )
    room = batching.num_pages * batching.page_tokens
    longest = max((arrival.prompt_tokens + arrival.new_tokens for arrival in trace), default=0)
    if longest > room:
        raise RequestError(
            f"A request must fit the cache of {room:,} tokens by itself; one may grow to {longest:,}. "
            "Shorten it, or give the cache more."
        )
