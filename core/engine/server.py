"""The step loop: requests come, share steps, and leave; ``Engine.generate`` is the case of one request."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from core.analytic.step_record import StepKind, StepRecord
from core.engine.kv_cache import KVPool
from core.engine.pages import PageTable
from core.engine.records import Request
from core.engine.run import Run
from core.engine.sampling import Sampler, Samplers, Sampling
from core.engine.scheduler import Plan, Scheduler
from core.engine.speculation import Asked
from core.engine.step import StepLabel
from core.errors import RequestError

if TYPE_CHECKING:
    from core.engine.engine import Engine


class Server:
    """Serves requests with one engine.

    Attributes:
        now: steps so far, those in which nobody could run included. steps: what each of them did.
        runs: all requests, in the order in which they were submitted.
        watch: called after each step with its record, those who took part and those who hold pages, before
            any page is given back.
    """

    def __init__(self, engine: Engine, pool: KVPool, scheduler: Scheduler) -> None:
        self.now = 0
        self.steps: list[StepRecord] = []
        self.runs: list[Run] = []
        self.watch: Callable[[StepRecord, list[Run], list[Run]], None] | None = None
        self._engine, self._pool, self._scheduler = engine, pool, scheduler
        self._speculator = scheduler.serving.speculator
        self._coming: list[tuple[int, int, Run]] = []  # a heap, by arrival and order
        self._order = count()

    def submit(self, request: Request) -> Run:
        """Take a request in.

        Raises:
            RequestError: its limits do not hold, or it could not run even with all pages to itself.
        """
        engine, allocator = self._engine, self._scheduler.allocator
        limit = engine.admit(request)
        if allocator.pages_for(limit) > allocator.num_pages:
            raise RequestError(
                f"A request must fit the cache of {allocator.num_pages * allocator.page_tokens:,} tokens by "
                f"itself; this one may grow to {limit:,}. Ask for fewer tokens, or give the cache more."
            )
        ends = engine.end_tokens if request.end_tokens is None else request.end_tokens
        sampler = Sampler(request.sampling, engine.device)
        run = Run(
            request,
            table=PageTable(allocator.page_tokens),
            sampler=sampler,
            codec=engine.text,
            end_tokens=ends,
            limit=limit,
        )
        self.runs.append(run)
        heapq.heappush(self._coming, (max(request.arrival, self.now), next(self._order), run))
        return run

    def fork(self, run: Run, sampling: Sampling) -> Run:
        """A second answer that goes on from what ``run`` has written so far.

        Both hold the same pages; the one in which both go on is copied before it is written
        (copy-on-write).

        Raises:
            RequestError: the run is not writing, or all places are taken.
        """
        scheduler = self._scheduler
        if run not in scheduler.running or run.is_reading:
            raise RequestError(
                "A request can be forked while it writes; this one does not. Step on, or ask anew."
            )
        if len(scheduler.running) >= scheduler.serving.max_sequences:
            raise RequestError(
                f"A fork needs a place of its own; all {scheduler.serving.max_sequences} are taken. Wait."
            )
        table = scheduler.allocator.fork(run.sequence.table)
        other = run.fork(table, Sampler(sampling, self._engine.device))
        self.runs.append(other)
        scheduler.running.append(other)
        return other

    @property
    def is_done(self) -> bool:
        """Nobody runs, waits, or is still to come."""
        return not (self._coming or self._scheduler.waiting or self._scheduler.running)

    def step(self) -> StepRecord | None:
        """One step for everybody; None where nobody could run and only time passed."""
        scheduler = self._scheduler
        self._let_arrive()
        self._guess()
        plan = scheduler.plan(self.now, more=bool(self._coming))
        self.now += 1
        if not plan.items:
            return None
        self._pool.copy_pages(plan.copies, scheduler.allocator.page_tokens)
        label, samplers = self._label(plan), _samplers(plan)
        work = [(run.sequence, tokens) for run, tokens in plan.items]
        chosen, record = self._engine.stepper.step(work, self._pool, samplers, label)
        self.steps.append(record)
        if self.watch is not None:
            self.watch(record, [run for run, _ in plan.items], scheduler.running)
        for (run, _), tokens in zip(plan.items, chosen, strict=True):
            self._commit(run, tokens, record)
        return record

    def close(self) -> None:
        """Give back all pages, whatever happened."""
        for run in self.runs:
            self._finish(run)
        self._coming.clear()

    def _let_arrive(self) -> None:
        """Move those whose time has come into the queue; where nothing else is to do, time jumps ahead."""
        scheduler = self._scheduler
        if self._coming and not scheduler.waiting and not scheduler.running:
            self.now = max(self.now, self._coming[0][0])
        while self._coming and self._coming[0][0] <= self.now:
            arrival, _, run = heapq.heappop(self._coming)
            run.arrive(arrival)
            scheduler.waiting.append(run)

    def _guess(self) -> None:
        """Let the speculator guess for those that write; without a cache, all tokens are pending again."""
        runs = [run for run in self._scheduler.running if not run.is_reading]
        if self._speculator is not None and runs:
            most = self._speculator.num_guesses
            asked = [
                Asked(run.sequence, run.sampler, min(most, run.limit - len(run.sequence.token_ids) - 1))
                for run in runs
            ]
            for run, guess in zip(runs, self._speculator.guess(asked), strict=True):
                run.add_guess(guess)
        if self._engine.cache == "none":
            for run in self._scheduler.running:
                run.sequence.num_cached = 0

    def _label(self, plan: Plan) -> StepLabel:
        allocator = self._scheduler.allocator
        reading = {run.is_reading for run, _ in plan.items}
        kind: StepKind = "mixed" if len(reading) > 1 else "prefill" if True in reading else "decode"
        return StepLabel(
            index=len(self.steps),
            kind=kind,
            pages_used=allocator.num_used,
            pages_free=allocator.num_free,
            num_waiting=len(self._scheduler.waiting),
            num_preempted=plan.num_preempted,
            shared_tokens=plan.shared_tokens,
        )

    def _commit(self, run: Run, tokens: list[int], record: StepRecord) -> None:
        """Take the new tokens of a run in; the pages of one that is done are free again."""
        sequence, allocator = run.sequence, self._scheduler.allocator
        allocator.truncate(sequence.table, sequence.num_cached)
        allocator.publish(
            sequence.table, sequence.token_ids, min(sequence.num_cached, len(sequence.token_ids))
        )
        run.steps.append(record)
        run.append(tokens)
        if run.stop_reason is not None:
            self._finish(run)

    def _finish(self, run: Run) -> None:
        self._scheduler.finish(run)
        if self._speculator is not None:
            self._speculator.forget(run.sequence)


def _samplers(plan: Plan) -> Samplers:
    wanted = [tokens == run.sequence.num_pending for run, tokens in plan.items]
    return Samplers(
        [run.chooser if want else None for (run, _), want in zip(plan.items, wanted, strict=True)],
        [
            1 + run.sequence.num_drafted if want else 1
            for (run, _), want in zip(plan.items, wanted, strict=True)
        ],
    )
