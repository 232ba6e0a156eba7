"""A plan over chips as pictures need it: what lies on each stage's chips, and how much more chips bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from core.analytic.constraints import Load, violations
from core.analytic.deployment import pass_on_chips
from core.analytic.machine import Machine
from core.analytic.parallel import ONE_CHIP, ParallelPlan, Stage, stages
from core.analytic.plan_on_chips import PlanOnChips, StageUse, plan_on_chips
from core.analytic.split_rules import split_violations
from core.catalog.feed_forward import MoE
from core.catalog.mixers import Attention, LatentAttention
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.lesson.amount import LessonCase

#: Degrees of the curve.
DEGREES: Final = (1, 2, 4, 8, 16, 32, 64)
#: Longest pipeline of the curve.
_MOST_STAGES: Final = 16


@dataclass(frozen=True, slots=True)
class ChipsOfStage:
    """The chips of one pipeline stage, which are alike; None where nothing can be timed.

    Attributes:
        first_layer, last_layer: from 1. query_heads: on each chip, None without attention.
        experts: of a layer on each chip, None without experts.
        weights_bytes, kv_bytes, activation_bytes, overhead_bytes: on each chip.
        decode_s, idle_share: of a decode round, how long each works and which share it waits.
        prefill_s, prefill_idle_share: the same of a prefill. sent_bytes: by each in a decode round.
    """

    first_layer: int
    last_layer: int
    query_heads: int | None
    experts: int | None
    weights_bytes: float
    kv_bytes: float
    activation_bytes: float
    overhead_bytes: float
    decode_s: float | None
    idle_share: float | None
    prefill_s: float | None
    prefill_idle_share: float | None
    sent_bytes: float | None

    @property
    def total_bytes(self) -> float:
        """Everything on one chip."""
        return self.weights_bytes + self.kv_bytes + self.activation_bytes + self.overhead_bytes


class _Question:
    """A scenario with what its names stand for, as a key: records that are the same objects are equal."""

    __slots__ = ("machine", "model", "scenario")

    def __init__(self, scenario: Scenario, model: ModelSpec, machine: Machine) -> None:
        self.scenario, self.model, self.machine = scenario, model, machine

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Question)
            and self.scenario == other.scenario
            and self.model is other.model
            and self.machine is other.machine
        )

    def __hash__(self) -> int:
        return hash((self.scenario, id(self.model), id(self.machine)))


@lru_cache(maxsize=64)
def _found(question: _Question) -> PlanOnChips:
    return plan_on_chips(question.scenario, question.model, question.machine)


def plan_of(case: LessonCase) -> PlanOnChips:
    """The scenario's plan: times, violations, and what each stage does."""
    return _found(_Question(case.scenario, case.model, case.machine))


def chips_of_stages(case: LessonCase) -> list[ChipsOfStage]:
    """What lies on the chips of each stage; empty where no share of a chip is defined."""
    found = plan_of(case)
    if not found.stages:
        return []
    rows, before = [], 0
    for use, stage in zip(found.stages, stages(case.model, found.parallel), strict=True):
        rows.append(_chips(case.model, found, use, stage, before))
        before += use.layers
    return rows


def _chips(model: ModelSpec, found: PlanOnChips, use: StageUse, stage: Stage, before: int) -> ChipsOfStage:
    prefill_s = None if found.plan.prefill is None else found.plan.prefill.time_s
    timed = prefill_s is not None and use.prefill_s is not None
    return ChipsOfStage(
        first_layer=before + 1,
        last_layer=before + use.layers,
        query_heads=_query_heads(stage.shard),
        experts=_experts(model, found.parallel),
        weights_bytes=float(use.memory.weights_bytes),
        kv_bytes=float(use.memory.kv_bytes),
        activation_bytes=float(use.memory.activation_bytes),
        overhead_bytes=float(use.memory.overhead_bytes),
        decode_s=use.decode_s,
        idle_share=use.idle_share,
        prefill_s=use.prefill_s,
        prefill_idle_share=1 - (use.prefill_s or 0.0) / (prefill_s or 1.0) if timed else None,
        sent_bytes=use.link_bytes,
    )


def _query_heads(shard: ModelSpec) -> int | None:
    mixers = [layer.mixer for layer in shard.layers]
    return next((m.num_heads for m in mixers if isinstance(m, Attention | LatentAttention)), None)


def _experts(model: ModelSpec, plan: ParallelPlan) -> int | None:
    parts = [layer.feed_forward for layer in model.layers]
    return next((part.num_experts // plan.ep for part in parts if isinstance(part, MoE)), None)


# --- How much more chips bring --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """A number of chips, how long a token takes on them, and how many times as fast that is as on one.

    Attributes:
        fits: whether the chips hold the scenario; the time is worked out all the same.
    """

    chips: int
    token_s: float
    factor: float
    fits: bool = True

    @property
    def efficiency(self) -> float:
        """The share of the chips that is not lost."""
        return self.factor / self.chips


def tensor_speed_ups(case: LessonCase) -> list[SpeedUp]:
    """A token with 1, 2, 4, ... chips that share every layer, as far as model and link go.

    Raises:
        FormatError: the machine lacks the arithmetic.
    """
    return _speed_ups(case, [ParallelPlan(tp=tp) for tp in DEGREES])


def pipeline_speed_ups(case: LessonCase) -> list[SpeedUp]:
    """A token with 1, 2, 4, ... stages, as far as layers and link go.

    Raises:
        FormatError: the machine lacks the arithmetic.
    """
    return _speed_ups(case, [ParallelPlan(pp=pp) for pp in DEGREES if pp <= _MOST_STAGES])


def works(case: LessonCase, plan: ParallelPlan) -> bool:
    """Whether nothing speaks against a plan of serving the scenario's load.

    Raises:
        FormatError: a format is unknown, or not for its use.
    """
    one = replace(case.scenario, count=1, tp=1, pp=1, ep=1)
    return _works(_Question(one, case.model, case.machine), plan)


@lru_cache(maxsize=512)
def _works(question: _Question, plan: ParallelPlan) -> bool:
    scenario = question.scenario
    context = scenario.input_tokens + scenario.output_tokens
    load = Load(scenario.batch, context, scenario.weights, scenario.kv)
    return not violations(question.model, plan, question.machine, load)


def degree_up_to(case: LessonCase, most: int) -> int:
    """The largest tensor-parallel degree up to ``most`` by which the model divides."""
    return next(tp for tp in range(most, 0, -1) if _can_be(case, ParallelPlan(tp=tp)))


def _can_be(case: LessonCase, plan: ParallelPlan) -> bool:
    alone = plan == ONE_CHIP
    return alone or (case.machine.link is not None and not split_violations(case.model, plan))


def _speed_ups(case: LessonCase, plans: Sequence[ParallelPlan]) -> list[SpeedUp]:
    """Beyond the chips that the link joins a network decides, which a data sheet does not name."""
    machine = case.machine
    far = machine.network is not None
    known = [p for p in plans if _can_be(case, p) and (far or p.chips <= machine.joined_chips)]
    times = [token_s(case, plan) for plan in known]
    return [
        SpeedUp(plan.chips, each, times[0] / each, works(case, plan))
        for plan, each in zip(known, times, strict=True)
    ]


def token_s(case: LessonCase, plan: ParallelPlan) -> float:
    """Seconds of the step in the middle of the answer, with the scenario's batch on one replica.

    Raises:
        FormatError: the machine lacks the arithmetic.
    """
    one = replace(case.scenario, count=1, tp=1, pp=1, ep=1)
    return _token_s(_Question(one, case.model, case.machine), plan)


@lru_cache(maxsize=512)
def _token_s(question: _Question, plan: ParallelPlan) -> float:
    scenario = question.scenario
    made = pass_on_chips(
        question.model,
        question.machine,
        plan,
        "decode",
        batch=scenario.batch,
        new_tokens=1,
        context=scenario.input_tokens + max(scenario.output_tokens // 2, 1),
        weights=scenario.weights,
        kv=scenario.kv,
    )
    return float(made.time_s)
