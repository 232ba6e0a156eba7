"""What serving a trace will take, before it is served: the simulator's steps, each by the operator table.

A step is predicted as a batch of equal sequences: as many as it has, with their mean of new tokens and
their mean of context. Products and the reading of the cache are then counted as they are; only the
arithmetic of attention in steps that read and write at once is off, and it is small. Left out: the time
between two steps, and that memory or cores are faster or slower than when they were calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analytic.latency import step_time
from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.catalog.model import ModelSpec
from core.lab.checked_json import Reader
from core.lab.serve_request import ServeRequest, Way
from core.simulate.batching import Arrival, SimulatedStep


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """When a request came, and when its first and its last token were there; seconds.

    Attributes:
        arrival_s, first_s, last_s: from the beginning of the first step.
        tokens: of its answer.
    """

    arrival_s: float
    first_s: float
    last_s: float
    tokens: int

    @property
    def ttft_s(self) -> float:
        """From its arrival to its first token."""
        return self.first_s - self.arrival_s

    @property
    def tpot_s(self) -> float | None:
        """(last token - first token) / (n - 1); None for a single token."""
        return (self.last_s - self.first_s) / (self.tokens - 1) if self.tokens > 1 else None


def predict_steps(request: ServeRequest, way: Way, model: ModelSpec, machine: Machine) -> tuple[float, ...]:
    """Seconds of each simulated step; nothing with guesses, for the simulator does not know which hold.

    Args:
        request: the trace.
        way: how it is served.
        model: the shape.
        machine: from a calibration.

    Raises:
        FormatError: the machine has no rate for a format.
    """
    if request.guesses_of(way):
        return ()
    steps = request.simulated(way)
    many = np.array([step.num_sequences for step in steps])
    table = operators(
        model,
        batch=many,
        new_tokens=np.array([step.new_tokens for step in steps]) / many,
        context=np.array([step.context_tokens for step in steps]) / many,
        weights=request.weights,
        kv=request.kv,
    )
    return tuple(float(seconds) for seconds in step_time(table, machine))


def predicted_steps(reader: Reader, request: ServeRequest, way: Way) -> tuple[float, ...]:
    """The predicted seconds that a record holds beside its steps; older records hold none.

    Raises:
        RecordError: they are not those of the simulated steps.
    """
    if not reader.data.get("predicted_step_s"):
        return ()
    steps_s = reader.numbers("predicted_step_s", 1e-9, 1e6)
    if request.guesses_of(way) or len(steps_s) != len(request.simulated(way)):
        reader.refuse("predicted_step_s", "the seconds of every simulated step, or nothing")
    return steps_s


def request_times(
    steps: Sequence[SimulatedStep], steps_s: Sequence[float], trace: Sequence[Arrival]
) -> list[RequestTimes]:
    """When each request's first and last token are there, where the steps take so long.

    >>> from core.simulate.batching import Batching, simulate
    >>> trace = [Arrival(4, 2), Arrival(4, 1, step=1)]
    >>> [(t.ttft_s, t.tpot_s) for t in request_times(simulate(trace, Batching(9, 4)), (3.0, 2.0), trace)]
    [(3.0, 2.0), (2.0, None)]
    """
    ends = np.cumsum(steps_s)
    found = []
    for index, arrival in enumerate(trace):
        mine = [place for place, step in enumerate(steps) if index in step.requests]
        read = (place for place in mine if dict(steps[place].held_tokens)[index] >= arrival.prompt_tokens)
        came = next(place for place, step in enumerate(steps) if step.now >= arrival.step)
        first = next(read)
        found.append(
            RequestTimes(
                arrival_s=float(ends[came] - steps_s[came]),
                first_s=float(ends[first]),
                last_s=float(ends[mine[-1]]),
                tokens=arrival.new_tokens,
            )
        )
    return found
