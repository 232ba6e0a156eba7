"""One way of serving as pictures and tables show it, simulated or served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from core.analytic.kv_cache import cache_bytes
from core.analytic.step_record import StepKind
from core.errors import UserError
from core.lab.calibration import Calibration
from core.lab.serve_predict import RequestTimes, predict_steps, request_times
from core.lab.serve_record import ServeRecord, Service
from core.lab.serve_request import ServeRequest, Way
from core.lesson.quantities.served_trace import simulated
from core.simulate.request_lanes import RequestLanes, request_lanes
from core.simulate.seats import Step
from core.simulate.waste import slots
from core.ui.figures.cache_over_time import CacheSize, CacheUsed
from core.ui.figures.time_axis import StepAxis, counted
from core.ui.lab import models
from core.ui.lab.many.settings import way_name

Axis = Literal["steps", "time"]
_MS: Final = 1e3


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What a step counts, under the names of ``SimulatedStep`` and ``StepRecord``."""

    kind: StepKind
    num_sequences: int
    new_tokens: int
    context_tokens: int
    pages_used: int
    pages_free: int
    num_waiting: int
    num_preempted: int
    shared_tokens: int


@dataclass(frozen=True, slots=True)
class Shown:
    """One way of serving a trace.

    Attributes:
        request, way: what was asked for.
        steps: who took part in each, and who holds which pages. counts: of the same steps.
        steps_s: seconds of each; empty where they are not known.
        times: of each request; empty where they are not known.
        source: what the steps are, in words. measured: they were served, not simulated.
    """

    request: ServeRequest
    way: Way
    steps: Sequence[Step]
    counts: Sequence[StepCounts]
    steps_s: tuple[float, ...]
    times: tuple[RequestTimes, ...]
    source: str
    measured: bool

    @property
    def name(self) -> str:
        """The way in words."""
        return way_name(self.way)

    @property
    def total_s(self) -> float | None:
        """All steps together; None where they are not known."""
        return sum(self.steps_s) if self.steps_s else None

    @property
    def size(self) -> CacheSize:
        """How the cache is laid out."""
        laid_out, model = self.request.batching(self.way), models.spec(self.request.model)
        tokens = laid_out.page_tokens
        return CacheSize(laid_out.num_pages, tokens, float(cache_bytes(model, self.request.kv, 1, tokens)))

    def lanes(self) -> RequestLanes:
        """The requests by step."""
        return request_lanes(self.steps, self.request.arrivals())

    def used(self) -> list[CacheUsed]:
        """The cache by step."""
        trace, tokens = self.request.arrivals(), self.size.block_tokens
        return [
            CacheUsed(step.now, counts.pages_used, slots(step, trace, tokens).filled, counts.num_waiting)
            for step, counts in zip(self.steps, self.counts, strict=True)
        ]

    def axis(self, by: Axis) -> StepAxis:
        """Steps, or their time where it is known; a step in which nobody ran takes none."""
        last = self.steps[-1].now
        if by == "steps" or not self.steps_s:
            return counted(last + 1)
        ends = dict(zip((step.now for step in self.steps), np.cumsum(self.steps_s), strict=True))
        edges = [0.0]
        for now in range(last + 1):
            edges.append(float(ends.get(now, edges[-1] / _MS)) * _MS)
        return StepAxis(tuple(edges), "ms, measured" if self.measured else "ms, predicted")


def predicted(request: ServeRequest, way: Way, calibration: Calibration | None) -> tuple[float, ...]:
    """The predicted seconds of each simulated step; nothing where they cannot be predicted."""
    if calibration is None:
        return ()
    try:
        machine = calibration.machine(request.weights)
        return predict_steps(request, way, models.spec(request.model), machine)
    except UserError:  # no rate for a format: the page shows counts alone
        return ()


def simulated_way(request: ServeRequest, way: Way, steps_s: tuple[float, ...]) -> Shown:
    """A way as the simulator counts it, with the predicted seconds of its steps."""
    steps = simulated(request, way)
    times = tuple(request_times(steps, steps_s, request.arrivals())) if steps_s else ()
    source = "simulated, without guesses" if request.guesses_of(way) else "simulated"
    return Shown(request, way, steps, [_counts(step) for step in steps], steps_s, times, source, False)


def served_way(record: ServeRecord, service: Service) -> Shown:
    """A way as it was served."""
    first = service.steps[0]
    ends = [max(first.end_s - first.record.host_s, 0.0), *(step.end_s for step in service.steps)]
    return Shown(
        request=record.request,
        way=service.way,
        steps=service.steps,
        counts=[_counts(step.record) for step in service.steps],
        steps_s=tuple(end - start for start, end in pairwise(ends)),
        times=tuple(
            RequestTimes(one.arrival_s, one.first_s, one.last_s, len(one.token_ids))
            for one in service.requests
        ),
        source=f"as it was served on {record.host.device_name or record.host.cpu}",
        measured=True,
    )


def _counts(step: object) -> StepCounts:
    return StepCounts(*(getattr(step, name) for name in StepCounts.__slots__))
