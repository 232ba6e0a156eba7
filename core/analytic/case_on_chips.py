"""The parts of a plan over several chips, each alone: memory, a prefill, a decode step, the mean step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.analytic.constraints import Load
from core.analytic.deployment import PassOnChips, Phase, mean_step_s, pass_on_chips
from core.analytic.machine import Machine
from core.analytic.memory import Footprint, footprints
from core.analytic.parallel import ParallelPlan
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.units import Number


@dataclass(frozen=True, slots=True)
class CaseOnChips:
    """A scenario with what is served, on which chips, and how they share it: the parts of its plan."""

    scenario: Scenario
    model: ModelSpec
    machine: Machine
    parallel: ParallelPlan

    @property
    def load(self) -> Load:
        """What a replica serves at the end of its answers."""
        scenario = self.scenario
        context = scenario.input_tokens + scenario.output_tokens
        return Load(scenario.batch, context, scenario.weights, scenario.kv)

    def memory(self) -> tuple[Footprint, ...]:
        """What a chip of each stage holds."""
        load = self.load
        return footprints(
            self.model,
            self.machine,
            self.parallel,
            batch=load.batch,
            context=load.context,
            weights=load.weights,
            kv=load.kv,
        )

    def prefill(self) -> PassOnChips:
        """The prefill of the whole batch."""
        return self._pass("prefill", self.scenario.input_tokens, self.scenario.input_tokens)

    def decode(self) -> PassOnChips:
        """The decode step in the middle of the answer."""
        return self._pass("decode", 1, self.scenario.input_tokens + max(self.scenario.output_tokens // 2, 1))

    def mean_step_s(self, batch: Number) -> NDArray[np.float64]:
        """The mean decode step of an answer, of a batch or of a sweep of them."""
        return mean_step_s(
            self.model,
            self.machine,
            self.parallel,
            batch=batch,
            input_tokens=self.scenario.input_tokens,
            output_tokens=self.scenario.output_tokens,
            weights=self.scenario.weights,
            kv=self.scenario.kv,
        )

    def _pass(self, phase: Phase, new_tokens: int, context: int) -> PassOnChips:
        return pass_on_chips(
            self.model,
            self.machine,
            self.parallel,
            phase,
            batch=self.scenario.batch,
            new_tokens=new_tokens,
            context=context,
            weights=self.scenario.weights,
            kv=self.scenario.kv,
        )
