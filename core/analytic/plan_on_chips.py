"""A plan over several chips: what each holds, how fast a replica is, and what speaks against it.

The same record as ``plan`` gives for one chip. Memory is that of the fullest chip; FLOPs and bytes are
those of all chips of one replica together; times are of one replica serving its batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from core.analytic.answer import end_to_end_s, tokens_per_s
from core.analytic.case_on_chips import CaseOnChips
from core.analytic.constraints import nearest_plans, violations
from core.analytic.deployment import PassOnChips
from core.analytic.kv_regimes import CacheSizes, cache_sizes
from core.analytic.latency import bound
from core.analytic.machine import Machine
from core.analytic.memory import Footprint, fullest
from core.analytic.parallel import ParallelPlan, stages
from core.analytic.plan import PassCost, Plan, answer_notes, context_violations
from core.analytic.split_rules import split_violations
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.errors import FormatError

#: Reasons after which a chip's share of the model is not defined, and after which nothing can be timed.
_NO_SHARE: Final = frozenset({"heads", "experts", "layers", "context"})
_NO_TIME: Final = frozenset({"link", "format"})


@dataclass(frozen=True, slots=True)
class StageUse:
    """What one chip of a stage holds and does.

    Attributes:
        index: of the stage, from 0. layers: how many it runs. memory: what it holds. cache: the same cache as
            engines set memory aside for it.
        prefill_s, decode_s: how long it works in a prefill and in a decode round; None without a rate.
        idle_share: of a decode round. link_bytes: sent by one chip in a decode round.
    """

    index: int
    layers: int
    memory: Footprint
    cache: CacheSizes
    prefill_s: float | None = None
    decode_s: float | None = None
    idle_share: float | None = None
    link_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class PlanOnChips:
    """A plan with what its chips do, and the nearest plans where something speaks against it."""

    parallel: ParallelPlan
    plan: Plan
    stages: tuple[StageUse, ...]
    nearest: tuple[ParallelPlan, ...]


def parallel_plan(scenario: Scenario) -> ParallelPlan:
    """How a scenario splits its model: what chips are left over by a replica are replicas too.

    >>> parallel_plan(Scenario(count=8, tp=4)).dp
    2
    """
    share = scenario.tp * scenario.pp
    replicas = scenario.count // share if scenario.count % share == 0 else 1
    return ParallelPlan(scenario.tp, scenario.pp, scenario.ep, replicas)


def divides(model: ModelSpec, parallel: ParallelPlan) -> bool:
    """Whether a chip's share of the model is defined, so that it can be weighed.

    >>> from core.catalog.models import model
    >>> divides(model("llama-3.3-70b"), ParallelPlan(tp=3))
    False
    """
    return not {one.topic for one in split_violations(model, parallel)} & _NO_SHARE


def plan_on_chips(
    scenario: Scenario, model: ModelSpec, machine: Machine, parallel: ParallelPlan | None = None
) -> PlanOnChips:
    """Count, time and check a scenario on the chips of its plan, and find others where it does not work.

    Args:
        scenario: what is served, on how many chips.
        model: its model.
        machine: one of its chips, with the network between boxes where that is known.
        parallel: the plan, where it says more than the scenario does (``parallel_plan``).

    Raises:
        FormatError: a format of the scenario is unknown, or not for its use.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> found = plan_on_chips(Scenario("llama-3.3-70b", count=8, tp=4), model("llama-3.3-70b"), chip)
    >>> found.plan.fits, found.parallel.dp, found.plan.violations
    (True, 2, ())
    """
    made = counted_on_chips(scenario, model, machine, parallel)
    near = nearest_to(scenario, model, machine, made)
    return replace(made, nearest=near)


def nearest_to(
    scenario: Scenario, model: ModelSpec, machine: Machine, made: PlanOnChips
) -> tuple[ParallelPlan, ...]:
    """The nearest plans that work; empty where nothing that another plan could change speaks against one."""
    case = CaseOnChips(scenario, model, machine, made.parallel)
    need = made.plan.memory
    if not violations(model, made.parallel, machine, case.load, scenario.count, need=need):
        return ()
    return nearest_plans(model, made.parallel, machine, case.load, count=scenario.count)


def counted_on_chips(
    scenario: Scenario,
    model: ModelSpec,
    machine: Machine,
    parallel: ParallelPlan | None = None,
    *,
    memory: tuple[Footprint, ...] = (),
) -> PlanOnChips:
    """The same without other plans, of which a search would count very many.

    ``memory`` is what a chip of each stage holds, where that is known already.

    Raises:
        FormatError: as ``plan_on_chips``.
    """
    case = CaseOnChips(scenario, model, machine, parallel or parallel_plan(scenario))
    memory = memory or (case.memory() if divides(model, case.parallel) else ())
    most = fullest(list(memory)) if memory else None
    against = violations(model, case.parallel, machine, case.load, scenario.count, need=most)
    topics, made = {one.topic for one in against}, Plan(most, *(None,) * 6, violations=(), notes=())
    uses = tuple(_held(index, case, need) for index, need in enumerate(memory))
    sentences = [*(one.sentence for one in against), *context_violations(scenario, model)]
    if memory and not topics & _NO_TIME:
        try:
            prefill, decode = case.prefill(), case.decode()
            made, uses = _timed(case, made, prefill, decode), _worked(uses, prefill, decode)
        except FormatError as problem:  # of a part that keeps a format of its own, as a router does
            sentences.append(str(problem))
    notes = (*model.notes, *machine.notes, *_notes(case))
    return PlanOnChips(case.parallel, replace(made, violations=tuple(sentences), notes=notes), uses, ())


def _held(index: int, case: CaseOnChips, memory: Footprint) -> StageUse:
    stage, load = stages(case.model, case.parallel)[index], case.load
    # Chips that share a sequence's tokens hold a part of them each.
    context = -(-load.context // case.parallel.cp)
    cache = cache_sizes(stage.shard, load.kv, load.batch, context)
    return StageUse(index, len(stage.whole_layers), memory, cache)


def _worked(uses: tuple[StageUse, ...], prefill: PassOnChips, decode: PassOnChips) -> tuple[StageUse, ...]:
    """The same with how long each stage works, waits and what it sends."""
    return tuple(
        replace(
            use,
            prefill_s=float(prefill.micro_batches * prefill.stage_s[use.index]),
            decode_s=float(decode.micro_batches * decode.stage_s[use.index]),
            idle_share=float(decode.idle_share[use.index]),
            link_bytes=float(decode.link_bytes[use.index]),
        )
        for use in uses
    )


def _timed(case: CaseOnChips, made: Plan, prefill: PassOnChips, decode: PassOnChips) -> Plan:
    scenario = case.scenario
    step_s = case.mean_step_s(scenario.batch)
    single, first_s = scenario.output_tokens == 1, float(prefill.time_s)
    return replace(
        made,
        prefill=_cost(case, prefill),
        decode=_cost(case, decode),
        ttft_s=first_s,
        tpot_s=None if single else float(step_s),
        end_to_end_s=float(end_to_end_s(first_s, float(step_s), scenario.output_tokens)),
        tokens_per_s=None if single else float(tokens_per_s(step_s, scenario.batch)),
    )


def _cost(case: CaseOnChips, made: PassOnChips) -> PassCost:
    """FLOPs and bytes of all chips of a replica; the limit is that of the slowest stage."""
    times = float(made.micro_batches) * case.parallel.tp
    slowest = bound(made.tables[int(np.argmax(made.stage_s))], case.machine)
    return PassCost(
        flops=times * sum(float(table.total("flops")) for table in made.tables),
        bytes=times * sum(float(table.streamed_bytes.sum()) for table in made.tables),
        time_s=float(made.time_s),
        limit=str(slowest.limit),
        factor=float(slowest.factor),
    )


def _notes(case: CaseOnChips) -> tuple[str, ...]:
    parallel, machine = case.parallel, case.machine
    share = parallel.tp * parallel.pp
    chips = "one chip" if share == 1 else f"{share:,} chips"
    others = (
        f"; the {parallel.dp:,} replicas serve as many times the requests, none faster"
        if parallel.dp > 1
        else ""
    )
    notes = [
        *answer_notes(case.scenario),
        "Memory is that of the fullest chip, everything else that of one replica with its own batch, on "
        f"{chips}{others}.",
        *_link_notes(parallel, machine),
    ]
    if machine.capacity_bytes is None:
        notes.append(
            f"How much memory {machine.name} offers to software is unknown, so is whether this fits."
        )
    return tuple(notes)


def _link_notes(parallel: ParallelPlan, machine: Machine) -> list[str]:
    """What is not known of the links that the plan uses."""
    split, link = parallel.split, machine.link
    reach = max(parallel.tp * parallel.pp, split.expert_spread)
    if reach == 1 or link is None:
        return []
    notes = []
    if link.latency_s is None:
        notes.append(f"The latency of {link.name} is unknown and counts as zero: times are floors.")
    if reach > machine.joined_chips and machine.network is None:
        notes.append(
            f"A group reaches over {reach:,} chips, more than the {machine.joined_chips} that {link.name} "
            "usually joins; it is taken for all of them. Name the network for a time that is no floor."
        )
    return notes
