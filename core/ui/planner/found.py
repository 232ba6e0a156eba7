"""What the planner finds for a scenario: the plan, and how much more would fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from core.analytic.constraints import Load, nearest_plans
from core.analytic.deployment import PassOnChips, Phase, pass_on_chips
from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import Plan
from core.analytic.plan_on_chips import nearest_to
from core.analytic.planner_room import Case, ContextRoom, Planned, context_that_fits, users_that_fit
from core.analytic.table import Operators
from core.catalog.accelerator import Accelerator
from core.ui.pass_arithmetic import Origin

#: Scenarios of a room full of people that are remembered.
_MOST_REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A planned scenario; None where something cannot be said.

    Attributes:
        users: the largest batch that fits. context: how long each sequence may grow.
        chip: the data sheet behind the machine. nearest: plans that work, where this one does not.
    """

    planned: Planned
    users: int | None
    context: ContextRoom | None
    chip: Accelerator
    nearest: tuple[ParallelPlan, ...] = ()

    @property
    def case(self) -> Case:
        """The scenario with its model and machine."""
        return self.planned.case

    @property
    def plan(self) -> Plan:
        """What it comes to."""
        return self.planned.plan

    @property
    def machine(self) -> Machine:
        """The chip as the arithmetic sees it."""
        return self.planned.case.machine

    @property
    def middle_context(self) -> int:
        """Tokens that the decode step in the middle of the answer looks at."""
        scenario = self.case.scenario
        return scenario.input_tokens + max(scenario.output_tokens // 2, 1)

    def table(self, phase: str) -> Operators:
        """The operators of the "prefill", or of the middle "decode" step."""
        scenario = self.case.scenario
        new = 1 if phase == "decode" else scenario.input_tokens
        return operators(
            self.case.model,
            batch=scenario.batch,
            new_tokens=new,
            context=self.middle_context if phase == "decode" else scenario.input_tokens,
            weights=scenario.weights,
            kv=scenario.kv,
            latent="absorbed" if phase == "decode" else "expanded",
        )

    def pass_on_chips(self, phase: Phase) -> PassOnChips:
        """The same on the chips of a replica, with their collectives.

        Raises:
            FormatError, ScenarioError: as ``deployment.pass_on_chips``.
        """
        scenario = self.case.scenario
        return pass_on_chips(
            self.case.model,
            self.machine,
            self.case.parallel,
            phase,
            batch=scenario.batch,
            new_tokens=1 if phase == "decode" else scenario.input_tokens,
            context=self.middle_context if phase == "decode" else scenario.input_tokens,
            weights=scenario.weights,
            kv=scenario.kv,
        )

    @property
    def share(self) -> int:
        """Chips of one replica."""
        return self.case.scenario.tp * self.case.scenario.pp

    def origin(self, fact: str) -> Origin:
        """Where one number of the data sheet was read."""
        read = self.chip.facts.get(fact)
        if read is None:
            return Origin(f"data sheet of {self.chip.name}")
        address = read.source if read.source.startswith("https://") else ""
        host = address.removeprefix("https://").partition("/")[0].removeprefix("www.")
        return Origin(f"{host}, read {read.date}" if address else read.source, address)


class _Key:
    """A case as a key: its scenario, and the identity of the records that its names stand for."""

    __slots__ = ("_parts", "case", "chip")

    def __init__(self, case: Case, chip: Accelerator) -> None:
        self.case, self.chip = case, chip
        self._parts = (case.scenario, case.model, chip.id, chip.name, chip.capacity_bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts == other._parts and self.chip == other.chip

    def __hash__(self) -> int:
        return hash(self._parts[0])


def find(case: Case, chip: Accelerator) -> Found:
    """Plan a case; what a room full of people asks for again and again is remembered."""
    return _find(_Key(case, chip))


@lru_cache(maxsize=_MOST_REMEMBERED)
def _find(key: _Key) -> Found:
    case = key.case
    planned = case.planned()
    return Found(planned, users_that_fit(case), context_that_fits(case), key.chip, _nearest(planned))


def _nearest(planned: Planned) -> tuple[ParallelPlan, ...]:
    """The nearest plans that work where this one does not; another split cannot help with a context."""
    case, scenario = planned.case, planned.case.scenario
    if planned.chips is not None:
        return nearest_to(scenario, case.model, case.machine, planned.chips)
    if planned.plan.fits is not False or case.machine.link is None:
        return ()
    load = Load(scenario.batch, case.context, scenario.weights, scenario.kv)
    return nearest_plans(case.model, case.parallel, case.machine, load, count=scenario.count)
