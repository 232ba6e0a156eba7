"""The pictures of the pages on serving, from the simulator's steps; the same functions draw served ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from core.lab.serve_request import ServeRequest, Way
from core.lesson.quantities import batching, paged_attention
from core.lesson.quantities.served_trace import WAYS, paging_request
from core.simulate.seats import Step
from core.simulate.waste import fullest, page_uses
from core.ui.figures.cache_waste import CacheUse, cache_waste
from core.ui.figures.page_tables import CacheMoment, page_tables
from core.ui.figures.policy_steps import PolicySteps, policy_steps
from core.ui.figures.seat_plan import seat_plan
from core.ui.lesson.one_token_scenes import marks
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene

SIMULATED: Final = "simulated"
#: The policies as titles.
TITLES: Final[Mapping[str, str]] = {
    "static": "Static batching",
    "dynamic": "Dynamic batching",
    "continuous": "Continuous batching",
    "continuous, chunked": "Continuous batching, chunked prefill",
}


def _seat_plan(scene: Scene) -> Picture:
    """Before the prediction always static batching, whatever the control says."""
    policy = scene.case.word("policy") if scene.answered else "static"
    return seat_plan(batching.plan_of(scene.case, policy), TITLES[policy], SIMULATED)


def _policy_steps(scene: Scene) -> Picture:
    case = scene.case
    policies = [
        PolicySteps(
            name=policy,
            steps=batching.total_steps(case, policy),
            used_share=batching.used_share(case, policy),
            first_token_steps=batching.first_token_steps(case, policy),
            largest_step=batching.largest_step(case, policy),
            chosen=policy == case.word("policy"),
        )
        for policy in WAYS
    ]
    return policy_steps(policies, marks(scene))


def moment(steps: Sequence[Step], request: ServeRequest, way: Way, place: int | None = None) -> CacheMoment:
    """The cache in one of the steps; in the first in which most of it is held unless given."""
    step, laid_out = steps[fullest(steps) if place is None else place], request.batching(way)
    return CacheMoment(
        step=step.now + 1,
        page_tokens=laid_out.page_tokens,
        num_pages=laid_out.num_pages,
        uses=page_uses(step, request.arrivals(), laid_out.page_tokens),
        tables=step.tables,
        tokens=dict(step.held_tokens),
    )


def _page_tables(scene: Scene) -> Picture:
    request = paging_request(scene.case)
    way = request.ways[paged_attention.PAGED]
    steps = paged_attention.steps_of(request, paged_attention.PAGED)
    return page_tables(moment(steps, request, way), SIMULATED)


def _cache_waste(scene: Scene) -> Picture:
    case, request = scene.case, paging_request(scene.case)
    names = {
        paged_attention.CONTIGUOUS: f"in one piece of {request.longest:,} slots",
        paged_attention.PAGED: f"in blocks of {request.page_tokens:,}",
    }
    uses = [
        CacheUse(
            name=name,
            slots=paged_attention.slots_of(case, way),
            at_once=paged_attention.mean_sequences(case, way),
            steps=paged_attention.steps_of(request, way)[-1].now + 1,
        )
        for way, name in names.items()
    ]
    return cache_waste(uses, marks(scene))


PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "seat_plan": _seat_plan,
    "policy_steps": _policy_steps,
    "page_tables": _page_tables,
    "cache_waste": _cache_waste,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "seat_plan": (seat_plan,),
    "policy_steps": (policy_steps,),
    "page_tables": (page_tables,),
    "cache_waste": (cache_waste,),
}
