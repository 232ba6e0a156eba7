"""What a plan comes to, what speaks against it, and the plans that can be applied with a click."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.analytic.parallel import ParallelPlan
from core.analytic.plan_on_chips import PlanOnChips
from core.catalog.feed_forward import MoE
from core.errors import UserError
from core.lesson.amount import LessonCase
from core.lesson.quantities.chip_plan import plan_of, works
from core.ui import choice_list, prose
from core.ui.choice_list import Offer
from core.ui.scenario import record
from core.units import format_count, format_seconds, significant

_MOST: Final = 4
#: Plans to look at, and what each is for; those with experts are for models that have some.
_DENSE: Final = (
    (ParallelPlan(tp=8), "Every layer on eight chips: each user gets a token sooner."),
    (ParallelPlan(tp=4, pp=2), "Two stages of four chips: half the layers on each, less to send."),
    (ParallelPlan(pp=4), "Four stages in a row: room for more layers, no token sooner."),
    (ParallelPlan(dp=4), "Four replicas: four times the users, none served sooner."),
)
_EXPERTS: Final = (
    (ParallelPlan(tp=8, ep=8), "Eight chips share attention, and each keeps an eighth of the experts."),
    (ParallelPlan(tp=8, dp=4, ep=32), "The experts lie on 32 chips; each replica keeps its own caches."),
)


def show(case: LessonCase) -> None:
    """Draw the line of numbers, the reasons against the plan, and plans to apply."""
    try:
        found = plan_of(case)
    except UserError:  # the picture says it
        return
    prose.paragraph(_summary(case, found))
    if found.plan.ttft_s is not None:
        _notes(case, found)
    _offers(case, found)


def _notes(case: LessonCase, found: PlanOnChips) -> None:
    known = {*case.model.notes, *case.machine.notes}
    prose.small(" ".join(note for note in found.plan.notes if note not in known))


def _offers(case: LessonCase, found: PlanOnChips) -> None:
    """The reasons against the plan, and other plans."""
    against = found.plan.violations
    if against:
        prose.paragraph("", strong="Against this plan")
        prose.bullets(against)
    plans = {_id(plan): (plan, says) for plan, says in _plans(case, found)}
    if not plans:
        return
    choice_list.show(
        [Offer(key, name(plan), "", says) for key, (plan, says) in plans.items()],
        "Apply",
        key="parallelism_plans",
        on_choose=lambda key: apply(plans[key][0]),
    )


def apply(plan: ParallelPlan) -> None:
    """Make a plan the scenario's. Meant as a callback."""
    record.change(tp=plan.tp, pp=plan.pp, ep=plan.ep, count=plan.chips)


def name(plan: ParallelPlan) -> str:
    """The degrees above one, and the chips.

    >>> name(ParallelPlan(tp=8, dp=2)), name(ParallelPlan())
    ('TP 8 × DP 2 on 16 chips', 'One chip')
    """
    degrees = {"TP": plan.tp, "PP": plan.pp, "DP": plan.dp, "EP": plan.ep}
    said = " × ".join(f"{word} {degree}" for word, degree in degrees.items() if degree > 1)
    return f"{said} on {plan.chips:,} chips" if plan.chips > 1 else "One chip"


def _id(plan: ParallelPlan) -> str:
    return f"{plan.tp}-{plan.pp}-{plan.ep}-{plan.dp}"


def _plans(case: LessonCase, found: PlanOnChips) -> Iterator[tuple[ParallelPlan, str]]:
    if found.plan.violations:
        yield from ((plan, "Nothing speaks against it.") for plan in found.nearest)
        return
    has_experts = any(isinstance(layer.feed_forward, MoE) for layer in case.model.layers)
    listed = (*_EXPERTS, *_DENSE) if has_experts else _DENSE
    fitting = [(plan, says) for plan, says in listed if plan != found.parallel and works(case, plan)]
    yield from fitting[:_MOST]


def _summary(case: LessonCase, found: PlanOnChips) -> str:
    plan = found.plan
    if plan.ttft_s is None:
        return f"{name(found.parallel)}: no time can be given."
    said = [f"the first token after {format_seconds(plan.ttft_s)}"]
    if plan.tpot_s is not None and plan.tokens_per_s is not None:
        rate = significant(plan.tokens_per_s * found.parallel.dp)
        said += [f"then one every {format_seconds(plan.tpot_s)}", f"{rate} tokens/s in all"]
    batch = case.scenario.batch
    users = format_count(batch, "user")
    where = "" if found.parallel.dp == 1 else " on each replica"
    return f"{name(found.parallel)}, {users}{where}: {', '.join(said)}."
