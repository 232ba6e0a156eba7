"""What the picture of "Prefill and decode" shows: one answer in time, and the rate at each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.answer import speed
from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.lesson.amount import LessonCase
from core.lesson.quantities.prefill_and_decode import first_step_table, prefill_table

#: Decode ticks that one timeline draws at most; past it, neighbours are one tick.
MOST_TICKS: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """One answer of a batch in time, and what each pass moves and computes.

    Attributes:
        prefill_s: seconds of the prefill. step_s: of each decode step, ``[steps]``.
        prefill_bytes, step_bytes, prefill_flops, step_flops: of the prefill, and of the first step.
    """

    prefill_s: float
    step_s: NDArray[np.float64]
    prefill_bytes: float
    step_bytes: float
    prefill_flops: float
    step_flops: float

    @property
    def starts_s(self) -> NDArray[np.float64]:
        """When each step begins."""
        return self.prefill_s + np.concatenate([[0.0], np.cumsum(self.step_s)[:-1]])

    @property
    def end_s(self) -> float:
        """When the last token is there."""
        return self.prefill_s + float(self.step_s.sum())


def timeline(case: LessonCase) -> Timeline:
    """Time one prefill and every decode step after it, on the case's machine.

    A long answer is shown as ``MOST_TICKS`` ticks of several steps each, whose times add up to the same.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    scenario = case.scenario
    prefill, step = prefill_table(case), first_step_table(case)
    return Timeline(
        prefill_s=float(step_time(prefill, case.machine)),
        step_s=_ticks(case, scenario.output_tokens - 1),
        prefill_bytes=float(prefill.streamed_bytes.sum()),
        step_bytes=float(step.streamed_bytes.sum()),
        prefill_flops=float(prefill.total("flops")),
        step_flops=float(step.total("flops")),
    )


def _ticks(case: LessonCase, steps: int) -> NDArray[np.float64]:
    if steps < 1:
        return np.zeros(0)
    edges = np.unique(np.linspace(0, steps, min(steps, MOST_TICKS) + 1).round())
    lengths, middles = np.diff(edges), (edges[:-1] + edges[1:] + 1) / 2
    contexts = case.scenario.input_tokens + middles
    table = operators(
        case.model,
        batch=case.scenario.batch,
        new_tokens=1,
        context=contexts,
        weights=case.scenario.weights,
        kv=case.scenario.kv,
    )
    return np.asarray(step_time(table, case.machine) * lengths)


def tokens_per_s_by_batch(case: LessonCase, batches: NDArray[np.float64]) -> NDArray[np.float64]:
    """Answer tokens a second at each batch, all sequences together."""
    scenario = case.scenario
    return speed(
        case.model,
        case.machine,
        batch=batches,
        input_tokens=scenario.input_tokens,
        output_tokens=max(scenario.output_tokens, 2),
        weights=scenario.weights,
        kv=scenario.kv,
    ).tokens_per_s
