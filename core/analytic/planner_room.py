"""How much fits: the inverse of the memory table, for users and for context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.case_on_chips import CaseOnChips
from core.analytic.machine import Machine
from core.analytic.memory import Footprint, footprint, fullest
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import Plan, plan
from core.analytic.plan_on_chips import PlanOnChips, counted_on_chips, divides, parallel_plan
from core.catalog.model import ModelSpec
from core.catalog.scenario import LIMITS, Scenario
from core.units import Number

#: The most users and tokens that are looked for.
MOST_USERS: Final = LIMITS["batch"][1]
MOST_TOKENS: Final = LIMITS["input_tokens"][1] + LIMITS["output_tokens"][1]
#: Values over the whole gap that one call of the memory table tries, and values around the likely one; a
#: sweep of so many costs little more than one.
_TRIES: Final = 32
_NEAR: Final = np.arange(-16.0, 16.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with what its names stand for."""

    scenario: Scenario
    model: ModelSpec
    machine: Machine

    def planned(self, memory: tuple[Footprint, ...] = ()) -> Planned:
        """What it comes to, on one chip or on those of its split.

        Args:
            memory: what ``memory`` says, where that was asked already.

        Raises:
            FormatError: a format of the scenario is unknown, or not for its use.
        """
        if not self.split:
            need = memory[0] if memory else None
            return Planned(self, plan(self.scenario, self.model, self.machine, memory=need))
        found = counted_on_chips(self.scenario, self.model, self.machine, memory=memory)
        return Planned(self, found.plan, found)

    def memory(self) -> tuple[Footprint, ...]:
        """What a chip of each stage holds at the end of the answers."""
        return self._on_chips.memory()

    def ttft_s(self) -> float:
        """The time to first token alone, for a quarter of a plan.

        Raises:
            FormatError, ScenarioError: as ``deployment.pass_on_chips``.
        """
        return float(self._on_chips.prefill().time_s)

    def tpot_s(self, batch: Number) -> NDArray[np.float64]:
        """The time per token alone, of this batch or of a sweep of them.

        Raises:
            FormatError, ScenarioError: as ``deployment.pass_on_chips``.
        """
        return self._on_chips.mean_step_s(batch)

    @property
    def _on_chips(self) -> CaseOnChips:
        return CaseOnChips(self.scenario, self.model, self.machine, self.parallel)

    def changed(self, **values: str | int) -> Case:
        """The same with other counts or formats; a model or chip needs its record too."""
        return replace(self, scenario=replace(self.scenario, **values))  # type: ignore[arg-type]

    @property
    def context(self) -> int:
        """Tokens that each sequence grows to."""
        return self.scenario.input_tokens + self.scenario.output_tokens

    @property
    def split(self) -> bool:
        """Whether the model is spread over chips."""
        return (self.scenario.tp, self.scenario.pp, self.scenario.ep) != (1, 1, 1)

    @property
    def parallel(self) -> ParallelPlan:
        """How the chips share the work; those without a split are replicas."""
        return parallel_plan(self.scenario)

    @property
    def replicas(self) -> int:
        """Copies of the model that serve users of their own."""
        return self.parallel.dp

    @property
    def weighed(self) -> bool:
        """Whether it can be said what fits: the capacity is known, and the model divides by its plan."""
        known = self.machine.capacity_bytes is not None
        return known and (not self.split or divides(self.model, self.parallel))


@dataclass(frozen=True, slots=True)
class Planned:
    """A case and what it comes to; ``chips`` is None where the model is not split."""

    case: Case
    plan: Plan
    chips: PlanOnChips | None = None


@dataclass(frozen=True, slots=True)
class ContextRoom:
    """How long each sequence of the batch may grow, input and output together.

    Attributes:
        memory_tokens: what the memory holds, at most ``MOST_TOKENS``. model_tokens: what the model was
            made for.
    """

    memory_tokens: int
    model_tokens: int

    @property
    def tokens(self) -> int:
        """What both allow."""
        return min(self.memory_tokens, self.model_tokens)


def fits(case: Case) -> bool | None:
    """Whether the memory of the fullest chip suffices; None where that cannot be said."""
    if not case.weighed:
        return None
    return bool(fullest(list(case.memory())).fits)


def users_that_fit(case: Case) -> int | None:
    """The largest batch whose sequences can all grow to the scenario's length on one replica.

    Exact: the memory table holds this many and not one more. 0 where not one fits; ``MOST_USERS`` where
    that many fit. None where the capacity is unknown or the model does not divide by its split.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> users_that_fit(Case(Scenario(input_tokens=7936), model("llama-3.1-8b"), chip))
    60
    """
    return _largest(case, MOST_USERS, lambda tried: need_of(case, batch=tried, context=case.context))


def context_that_fits(case: Case) -> ContextRoom | None:
    """The longest sequences that fit at the scenario's batch; None where that cannot be said."""
    batch = case.scenario.batch
    tokens = _largest(case, MOST_TOKENS, lambda tried: need_of(case, batch=batch, context=tried))
    return None if tokens is None else ContextRoom(tokens, case.model.max_context)


def need_of(case: Case, *, batch: Number, context: Number) -> Footprint:
    """What the fullest chip must hold for another batch or context."""
    return footprint(
        case.model,
        case.machine,
        batch=batch,
        context=context,
        weights=case.scenario.weights,
        kv=case.scenario.kv,
        plan=case.parallel,
    )


def _largest(case: Case, most: int, need: Callable[[NDArray[np.float64]], Footprint]) -> int | None:
    """The largest count from 1 to ``most`` that fits, 0 where none does.

    More never fits where less does not, so each round of tries narrows the gap 33 times at least; and memory
    grows nearly in a line, so the second round usually ends it.
    """
    capacity = case.machine.capacity_bytes
    if capacity is None or not case.weighed:
        return None
    known, refused, likely = 0, most + 1, 1.0
    while refused - known > 1:
        tried = _tries(known + 1, refused - 1, likely)
        totals = need(tried).total_bytes
        held = int((totals <= capacity).sum())
        known = int(tried[held - 1]) if held else known
        refused = int(tried[held]) if held < len(tried) else refused
        likely = float(np.interp(capacity, totals, tried))
    return known


def _tries(first: int, last: int, likely: float) -> NDArray[np.float64]:
    """Whole numbers over a range, its ends among them, and those around the likely one."""
    near = np.clip(likely + _NEAR, first, last)
    return np.unique(np.concatenate([np.linspace(first, last, _TRIES), near]).round())
