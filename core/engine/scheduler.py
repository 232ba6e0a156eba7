"""What the next step works on: a budget of tokens, spent on running requests first, then on waiting ones.

A plan is a list of ``(run, tokens)``. Reading a prompt, reading a piece of one, continuing an answer and
verifying guesses differ only in the number of tokens, so they share a step. When pages run out, the
request that came last gives its pages back and is computed again later (preemption by recompute).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from core.analytic.batching_policy import Continuous, Policy, Queue
from core.analytic.step_record import PREFILL_TOKENS
from core.engine.pages import Copy, PageAllocator
from core.engine.run import Run
from core.engine.speculation import Speculator
from core.errors import RequestError


@dataclass(frozen=True, slots=True)
class Serving:
    """How requests share steps.

    Attributes:
        policy: when those that wait may join. max_sequences: the most that may run at once.
        step_tokens: the most tokens that a step computes; longer prompts are read in pieces.
        cache_tokens: slots of the cache; room for ``max_sequences`` of the longest if None. A contiguous
            cache gives each sequence as many as the longest request may need.
        share: look for pages that already hold the beginning of a request, a preempted one's own included.
            Then fewer rows are computed, maybe by other kernels: outputs are only sure to stay equal in fp32.
        speculator: guesses tokens that the model then verifies; None for one token after the other.
    """

    policy: Policy = field(default_factory=Continuous)
    max_sequences: int = 8
    step_tokens: int = PREFILL_TOKENS
    cache_tokens: int | None = None
    share: bool = True
    speculator: Speculator | None = None

    def __post_init__(self) -> None:
        for name in ("max_sequences", "step_tokens", "cache_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise RequestError(f"{name} must be 1 or more; got {value}.")


#: Everybody joins as soon as there is room.
CONTINUOUS: Final = Serving()


@dataclass(slots=True)
class Plan:
    """One step to come.

    Attributes:
        items: runs, and how many of their pending tokens each may compute.
        copies: pages to copy before. num_preempted, shared_tokens: what planning it led to.
        budget: tokens that it may still take.
    """

    budget: int
    items: list[tuple[Run, int]] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    num_preempted: int = 0
    shared_tokens: int = 0


class Scheduler:
    """Plans steps over one set of pages.

    Attributes:
        waiting: requests that have arrived, first come first. running: those that hold pages.
    """

    def __init__(self, allocator: PageAllocator, serving: Serving) -> None:
        self.allocator, self.serving = allocator, serving
        self.waiting: deque[Run] = deque()
        self.running: list[Run] = []

    def plan(self, now: int, *, more: bool) -> Plan:
        """Choose what step ``now`` works on; ``more`` says whether others are still to arrive."""
        plan = Plan(self.serving.step_tokens)
        waited = now - self.waiting[0].arrival if self.waiting else 0
        places = self.serving.max_sequences
        queue = Queue(len(self.waiting), len(self.running), waited, places, more)
        self._continue(plan)
        if plan.num_preempted == 0 and self.serving.policy.admits(queue):
            self._admit(plan)
        return plan

    def finish(self, run: Run) -> None:
        """Take a run out, wherever it is, and free its pages."""
        if run in self.running:
            self.running.remove(run)
        elif run in self.waiting:
            self.waiting.remove(run)
        self.allocator.truncate(run.sequence.table, 0)

    def _continue(self, plan: Plan) -> None:
        """Give tokens to those that run, in the order in which they came; guesses take what is left over."""
        runs = list(self.running)
        for behind, run in zip(reversed(range(len(runs))), runs, strict=True):
            if run.sequence.num_pending > plan.budget - behind:
                run.sequence.drop_guesses()
            if plan.budget == 0 or run not in self.running:
                continue
            while not self._take(plan, run):
                victim = self.running[-1]
                self._preempt(plan, victim)
                if victim is run:
                    break

    def _admit(self, plan: Plan) -> None:
        """Let waiting requests in while there are tokens, places and pages."""
        while self.waiting and plan.budget and len(self.running) < self.serving.max_sequences:
            run = self.waiting[0]
            sequence = run.sequence
            if self.serving.share:
                sequence.num_cached = self.allocator.match(sequence.table, sequence.token_ids)
            if not self._take(plan, run):
                self.allocator.truncate(sequence.table, 0)
                sequence.num_cached = 0
                break
            plan.shared_tokens += sequence.num_cached
            self.running.append(self.waiting.popleft())

    def _take(self, plan: Plan, run: Run) -> bool:
        """Add a run to the plan, with as many tokens as the budget has; False where pages are missing."""
        sequence = run.sequence
        count = min(sequence.num_pending, plan.budget)
        start = sequence.num_cached
        copies = self.allocator.extend(sequence.table, start, start + count)
        if copies is None and sequence.num_drafted:  # guesses are not worth somebody's pages
            sequence.drop_guesses()
            return self._take(plan, run)
        if copies is None:
            return False
        plan.copies += copies
        plan.items.append((run, count))
        plan.budget -= count
        return True

    def _preempt(self, plan: Plan, run: Run) -> None:
        """Give back the pages of a run, which goes to the head of the queue."""
        self.allocator.truncate(run.sequence.table, 0)
        run.drop_pages()
        self.running.remove(run)
        self.waiting.appendleft(run)
        plan.num_preempted += 1
