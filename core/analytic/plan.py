"""A plan of one chip: does a model fit there, how fast is it, and what speaks against it.

Everything is a view of the operator table of two passes: the prefill, and the decode step in the
middle of the answer. Plans over several chips are made by ``plan_on_chips``; cost, energy and ranges
follow from the times (``plan_value``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from core.analytic.answer import end_to_end_s, mean_of_steps, sampled_contexts, tokens_per_s
from core.analytic.latency import Bound, bound
from core.analytic.machine import Machine
from core.analytic.memory import Footprint, footprint
from core.analytic.operators import operators
from core.analytic.table import Operators
from core.catalog.formats import number_format
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.errors import FormatError, ScenarioError
from core.units import format_gib


@dataclass(frozen=True, slots=True)
class PassCost:
    """One forward pass: FLOPs, bytes moved, and what it waits for; times None where there is no rate.

    Attributes:
        limit: "memory", "compute" or "overhead". factor: how many times as long as the next limit.
    """

    flops: float
    bytes: float
    time_s: float | None = None
    limit: str | None = None
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scenario comes to on one chip, or on those of one replica; None where it cannot be said.

    Attributes:
        memory: bytes by purpose, at the longest context. prefill: of the whole batch.
        decode: the step in the middle of the answer.
        violations: sentences on what cannot work. notes: sentences on what the numbers mean.
    """

    memory: Footprint | None
    prefill: PassCost | None
    decode: PassCost | None
    ttft_s: float | None
    tpot_s: float | None
    end_to_end_s: float | None
    tokens_per_s: float | None
    violations: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool | None:
        """Whether the memory suffices; None where that cannot be said."""
        fits = None if self.memory is None else self.memory.fits
        return None if fits is None else bool(fits)


def plan(scenario: Scenario, model: ModelSpec, machine: Machine, *, memory: Footprint | None = None) -> Plan:
    """Count and time a scenario on one chip of ``machine``.

    Args:
        scenario: what is served.
        model: its model.
        machine: where.
        memory: what the chip holds, where that is known already.

    Raises:
        FormatError: a format of the scenario is unknown, or not for its use.
        ScenarioError: the scenario splits its model over chips; ``plan_on_chips`` counts those.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> found = plan(Scenario(), model("llama-3.1-8b"), machine_from(accelerator("h100-sxm-80gb")))
    >>> found.fits, found.decode.limit, found.violations
    (True, 'memory', ())
    """
    if (scenario.tp, scenario.pp, scenario.ep) != (1, 1, 1):
        raise ScenarioError(
            f"A plan of one chip must have tp, pp and ep of 1; got {scenario.tp}, {scenario.pp} and "
            f"{scenario.ep}. Call plan_on_chips for a model that is split."
        )
    number_format(scenario.weights, "weights")
    number_format(scenario.kv, "kv")
    notes = (*model.notes, *machine.notes, *_scenario_notes(scenario))
    need = memory or _memory(scenario, model, machine)
    prefill, decode = _tables(scenario, model)
    violations = [*_memory_violations(need, machine), *context_violations(scenario, model)]
    try:
        first, steps = bound(prefill, machine), bound(decode, machine)
        costs = (_cost(prefill, first), _cost(decode, steps))
        times = _times(scenario, first, steps)
    except FormatError as problem:
        violations.append(str(problem))
        times = (None, None, None, None)
        costs = (_count(prefill), _count(decode))
    if need.capacity_bytes is None:
        notes += (f"How much memory {machine.name} offers to software is unknown, so is whether this fits.",)
    return Plan(need, *costs, *times, violations=tuple(violations), notes=notes)


def _scenario_notes(scenario: Scenario) -> tuple[str, ...]:
    notes = []
    if scenario.count > 1:
        notes.append(
            f"All numbers are of one chip. {scenario.count:,} chips without a split are independent "
            f"replicas: together they serve {scenario.count:,} times the requests, none of them faster."
        )
    return (*notes, *answer_notes(scenario))


def answer_notes(scenario: Scenario) -> tuple[str, ...]:
    """That an answer of one token has no time per further token; empty for longer answers."""
    if scenario.output_tokens > 1:
        return ()
    return ("The answer is one token, which the prefill gives, so there is no time per token after it.",)


def _memory(scenario: Scenario, model: ModelSpec, machine: Machine) -> Footprint:
    return footprint(
        model,
        machine,
        batch=scenario.batch,
        context=scenario.input_tokens + scenario.output_tokens,
        weights=scenario.weights,
        kv=scenario.kv,
    )


def _memory_violations(need: Footprint, machine: Machine) -> list[str]:
    if need.capacity_bytes is None or need.fits:
        return []
    return [
        f"{format_gib(float(need.total_bytes))} must fit into the {format_gib(need.capacity_bytes)} of "
        f"{machine.name}. Choose a smaller format, batch or context, or a larger chip."
    ]


def context_violations(scenario: Scenario, model: ModelSpec) -> list[str]:
    """That the sequences grow past what the model was made for; empty where they do not."""
    context = scenario.input_tokens + scenario.output_tokens
    if context <= model.max_context:
        return []
    return [
        f"Input and output together must be within the {model.max_context:,} tokens that {model.name} was "
        f"made for; they are {context:,}. The numbers hold, the text would not."
    ]


def _tables(scenario: Scenario, model: ModelSpec) -> tuple[Operators, Operators]:
    """The prefill, and a sweep of decode steps: half way through the answer, and those that give its mean."""
    first, last = scenario.input_tokens, scenario.output_tokens
    contexts = np.append(first + max(last // 2, 1), sampled_contexts(first, last))
    make = partial(operators, model, batch=scenario.batch, weights=scenario.weights, kv=scenario.kv)
    prefill = make(new_tokens=first, context=first, latent="expanded")
    return prefill, make(new_tokens=1, context=contexts, latent="absorbed")


def _times(
    scenario: Scenario, prefill: Bound, decode: Bound
) -> tuple[float | None, float | None, float | None, float | None]:
    """TTFT (the prefill), TPOT, end-to-end time and rate."""
    single, ttft_s = scenario.output_tokens == 1, float(prefill.time_s)
    each = mean_of_steps(decode.time_s[1:], scenario.output_tokens)
    return (
        ttft_s,
        None if single else float(each),
        float(end_to_end_s(ttft_s, each, scenario.output_tokens)),
        None if single else float(tokens_per_s(each, scenario.batch)),
    )


def _count(table: Operators) -> PassCost:
    """FLOPs and bytes of a pass, of a sweep those of its first."""
    return PassCost(_first(table.total("flops")), _first(table.streamed_bytes.sum(axis=0)))


def _cost(table: Operators, found: Bound) -> PassCost:
    return replace(
        _count(table),
        time_s=_first(found.time_s),
        limit=str(found.limit.flat[0]),
        factor=_first(found.factor),
    )


def _first(values: NDArray[np.float64]) -> float:
    return float(values.flat[0])
