"""The nearest plans that work where the scenario's does not: each a button that applies it."""

from __future__ import annotations

from dataclasses import replace

from core.analytic.parallel import ParallelPlan
from core.catalog.scenario import LIMITS, Scenario
from core.ui import choice_list, prose
from core.ui.choice_list import Offer
from core.ui.planner.found import Found
from core.ui.scenario import record
from core.units import format_count


def draw(found: Found) -> None:
    """Draw the plans; nothing where the scenario's works, or where no plan helps."""
    plans = {_name(plan): plan for plan in offered(found)}
    if not plans:
        return
    prose.small("The nearest plans that work:")
    choice_list.show(
        [Offer(name, name, "", _sentence(plan)) for name, plan in plans.items()],
        "Apply",
        key="planner_nearest",
        on_choose=lambda name: record.use(applied(found.case.scenario, plans[name])),
    )


def offered(found: Found) -> tuple[ParallelPlan, ...]:
    """Those that a scenario can hold: it has no degrees for tokens of a sequence."""
    most = LIMITS["count"][1]
    return tuple(plan for plan in found.nearest if plan.cp == plan.sp == 1 and plan.chips <= most)


def applied(scenario: Scenario, plan: ParallelPlan) -> Scenario:
    """The scenario on the chips of a plan.

    >>> applied(Scenario(), ParallelPlan(tp=4, dp=2)).count
    8
    """
    return replace(scenario, tp=plan.tp, pp=plan.pp, ep=plan.ep, count=plan.chips)


def _name(plan: ParallelPlan) -> str:
    """The degrees above one, and the chips.

    >>> _name(ParallelPlan(tp=8, pp=2, dp=2))
    'tp 8, pp 2, dp 2'
    """
    degrees = {"tp": plan.tp, "pp": plan.pp, "ep": plan.ep, "dp": plan.dp}
    return ", ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1) or "no split"


def _sentence(plan: ParallelPlan) -> str:
    """What a plan means.

    >>> _sentence(ParallelPlan(tp=4, dp=2)), _sentence(ParallelPlan())
    ('2 replicas, each split over 4 chips: 8 chips in all.', 'The whole model on 1 chip.')
    """
    share = plan.tp * plan.pp
    chips = format_count(share, "chip")
    if plan.dp == 1:
        return f"The whole model on {chips}." if share == 1 else f"The model split over {chips}."
    each = f"each on {chips}" if share == 1 else f"each split over {chips}"
    return f"{plan.dp:,} replicas, {each}: {plan.chips:,} chips in all."
