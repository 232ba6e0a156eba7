"""Other ways to spread a scenario's model over chips, nearest first, as scenarios to be planned."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import Final

from core.analytic.planner_room import Case
from core.analytic.split_rules import group_violations, split_violations
from core.catalog.scenario import LIMITS

_DEGREES: Final = tuple(2**power for power in range(7))
#: The longest pipeline that is offered.
_MOST_STAGES: Final = 16


def other_splits(case: Case, *, pipelines: bool) -> Iterator[Case]:
    """The same scenario over other numbers of chips; only splits by which the model divides.

    The chips stay as many where the new split divides them, else they are those of one replica.

    Args:
        case: the scenario.
        pipelines: try other pipelines too; they give room and no speed.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> from core.catalog.scenario import Scenario
    >>> now = Case(Scenario(), model("llama-3.1-8b"), machine_from(accelerator("h100-sxm-80gb")))
    >>> [(other.scenario.tp, other.scenario.count) for other in other_splits(now, pipelines=False)]
    [(2, 2), (4, 4), (8, 8)]
    """
    if case.machine.link is None:
        return
    now = case.scenario
    share = now.tp * now.pp
    stages = {now.pp, *(_DEGREES if pipelines else ())}
    degrees = [
        (tp, pp)
        for tp in _DEGREES
        for pp in stages
        if (tp, pp) != (now.tp, now.pp) and tp <= case.machine.joined_chips and pp <= _MOST_STAGES
    ]
    for tp, pp in sorted(degrees, key=lambda pair: (abs(log2(pair[0] * pair[1] / share)), pair[1])):
        yield from _divided(case, tp, pp)


def split_label(case: Case) -> str:
    """A split in a few words ("split over 4 chips").

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> from core.catalog.scenario import Scenario
    >>> split_label(Case(Scenario(tp=8, pp=2), model("llama-3.1-8b"), machine_from(accelerator("t4"))))
    'split over 16 chips (tp 8, pp 2)'
    """
    now = case.scenario
    share = now.tp * now.pp
    if share == 1:
        return "no split"
    return f"split over {share:,} chips{f' (tp {now.tp}, pp {now.pp})' if now.pp > 1 else ''}"


def _divided(case: Case, tp: int, pp: int) -> Iterator[Case]:
    """The split with the experts spread as now, else over the stage, else not; none where none divides."""
    now, share = case.scenario, tp * pp
    count = now.count if now.count % share == 0 else share
    if count > LIMITS["count"][1]:
        return
    for ep in dict.fromkeys((now.ep, tp if now.ep > 1 else 1, 1)):
        other = case.changed(tp=tp, pp=pp, ep=ep, count=count)
        plan = other.parallel
        if not split_violations(case.model, plan) and not group_violations(case.model, plan, now.weights):
            yield other
            return
