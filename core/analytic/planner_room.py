"""How much fits: the inverse of the memory table, for users and for context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.machine import Machine
from core.analytic.memory import Footprint, footprint
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import Plan, plan
from core.analytic.plan_on_chips import PlanOnChips, counted_on_chips, divides, parallel_plan
from core.catalog.model import ModelSpec
from core.catalog.scenario import LIMITS, Scenario
from core.units import Number

#: The most users and tokens that are looked for.
MOST_USERS: Final = LIMITS["batch"][1]
MOST_TOKENS: Final = LIMITS["input_tokens"][1] + LIMITS["output_tokens"][1]
#: Values that one call of the memory table tries; a sweep of so many costs little more than one.
_TRIES: Final = 64


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with what its names stand for."""

    scenario: Scenario
    model: ModelSpec
    machine: Machine

    def planned(self) -> Planned:
        """What it comes to, on one chip or on those of its split.

        Raises:
            FormatError: a format of the scenario is unknown, or not for its use.
        """
        if not self.split:
            return Planned(self, plan(self.scenario, self.model, self.machine))
        found = counted_on_chips(self.scenario, self.model, self.machine)
        return Planned(self, found.plan, found)

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
    return bool(_held(case, batch=case.scenario.batch, context=case.context))


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
    return _largest(case, MOST_USERS, lambda tried: _held(case, batch=tried, context=case.context))


def context_that_fits(case: Case) -> ContextRoom | None:
    """The longest sequences that fit at the scenario's batch; None where that cannot be said."""
    tokens = _largest(case, MOST_TOKENS, lambda tried: _held(case, batch=case.scenario.batch, context=tried))
    return None if tokens is None else ContextRoom(tokens, case.model.max_context)


def _held(case: Case, *, batch: Number, context: Number) -> NDArray[np.bool_]:
    """What the memory table says of each of a sweep; the capacity must be known."""
    return np.asarray(need_of(case, batch=batch, context=context).fits, np.bool_)


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


def _largest(case: Case, most: int, held: Callable[[NDArray[np.float64]], NDArray[np.bool_]]) -> int | None:
    """The largest count from 1 to ``most`` that fits, 0 where none does.

    More never fits where less does not, so each round of tries narrows the gap 65 times.
    """
    if not case.weighed:
        return None
    known, refused = 0, most + 1
    while refused - known > 1:
        tried = np.unique(np.linspace(known + 1, refused - 1, _TRIES).round())
        count = int(held(tried).sum())
        known = int(tried[count - 1]) if count else known
        refused = int(tried[count]) if count < len(tried) else refused
    return known
