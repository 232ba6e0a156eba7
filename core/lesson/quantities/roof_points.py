"""Every operator of a prefill and of a decode step under a chip's roof, for the picture of page 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from core.analytic.latency import demand, operator_times, unsupported_sentence
from core.analytic.operators import operators
from core.analytic.roofline import RoofMark
from core.analytic.table import Operators
from core.catalog.formats import STORAGE_FORMATS
from core.errors import FormatError
from core.lesson.amount import LessonCase

Phase = Literal["prefill", "decode"]
PHASES: Final[tuple[Phase, ...]] = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class RoofPoint(RoofMark):
    """One operator of a pass, all its repeats together; name and kind are the operator table's."""

    kind: str


@dataclass(frozen=True, slots=True)
class PassShares:
    """What a pass waits for, as parts of its time: each operator waits for the limit that takes longer."""

    memory: float
    arithmetic: float
    overhead: float


@dataclass(frozen=True, slots=True)
class RoofPass:
    """One pass: its operators that compute something, what it waits for, and its time."""

    phase: Phase
    points: tuple[RoofPoint, ...]
    shares: PassShares
    time_s: float

    @property
    def matrices(self) -> RoofPoint:
        """All matrix products as one point."""
        found = [point for point in self.points if point.kind == "linear"]
        return RoofPoint(
            "matrices",
            sum(point.flops for point in found),
            sum(point.bytes for point in found),
            sum(point.time_s for point in found),
            "linear",
        )


def pass_table(case: LessonCase, phase: Phase) -> Operators:
    """The prefill of the batch, or its first decode step after the prompt."""
    scenario = case.scenario
    prompt = scenario.input_tokens
    return operators(
        case.model,
        batch=scenario.batch,
        new_tokens=prompt if phase == "prefill" else 1,
        context=prompt if phase == "prefill" else prompt + 1,
        weights=scenario.weights,
        kv=scenario.kv,
    )


def peak_flops_per_s(case: LessonCase) -> float:
    """The chip's dense peak in the format that the weights are multiplied in.

    Raises:
        FormatError: it has no such arithmetic.
    """
    needed = compute_format(case)
    if needed not in case.machine.peak_flops_per_s:
        raise FormatError(unsupported_sentence(case.scenario.weights, case.machine))
    return case.machine.peak_flops_per_s[needed]


def compute_format(case: LessonCase) -> str:
    """The format that the weights are multiplied in."""
    return STORAGE_FORMATS[case.scenario.weights].compute


def roof_pass(case: LessonCase, phase: Phase) -> RoofPass:
    """One pass of the case under the roof of its machine.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    table = pass_table(case, phase)
    times = operator_times(table, case.machine)
    seconds, flops, moved = (table.by_name(column) for column in (times, table.flops, table.streamed_bytes))
    points = tuple(
        RoofPoint(name, float(done), float(moved[name]), float(seconds[name]), table.kinds[table.index(name)])
        for name, done in flops.items()
        if done > 0 and moved[name] > 0
    )
    return RoofPass(phase, points, _shares(table, case), case.machine.step_fixed_s + float(times.sum()))


def _shares(table: Operators, case: LessonCase) -> PassShares:
    asked = demand(table, case.machine)
    waits = asked.memory_s >= asked.compute_s
    memory = float(np.where(waits, asked.memory_s, 0).sum())
    arithmetic = float(np.where(waits, 0, asked.compute_s).sum())
    fixed = float(asked.fixed_s.sum()) + case.machine.step_fixed_s
    whole = memory + arithmetic + fixed
    return PassShares(memory / whole, arithmetic / whole, fixed / whole)
