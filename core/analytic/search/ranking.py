"""Orders what a search found: the best by one measure, and the front that no other candidate beats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.analytic.parallel import ParallelPlan
from core.analytic.search.candidates import Searched
from core.catalog.accelerator import Accelerator

Measure = Literal["cost", "memory", "latency"]
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One deployment that does what was asked.

    Attributes:
        chip, plan, weights, cache, batch: what it is. replicas, chips: how many of them.
        ttft_s, tpot_s: what a user waits. memory_margin: free share of each chip's memory.
        requests_per_s: of one full replica. usd_per_million: output tokens with their prompts; None
            where no price is known.
    """

    chip: Accelerator
    plan: ParallelPlan
    weights: str
    cache: str
    batch: int
    replicas: int
    chips: int
    ttft_s: float
    tpot_s: float
    memory_margin: float
    requests_per_s: float
    usd_per_million: float | None


def ranked(
    found: Searched, by: Measure = "cost", most: int = 10, *, one_a_chip: bool = True
) -> tuple[Candidate, ...]:
    """The best candidates by dollars a token, free memory, or time per token; ties keep the fewer chips.

    Args:
        found: what was searched.
        by: the measure. Candidates without it (no price) come last and are left out of "cost".
        most: how many.
        one_a_chip: only the best of each product, so that the list is not one chip ten times.

    >>> from core.analytic.search.candidates import search
    >>> from core.analytic.search.request import Wanted
    >>> from core.catalog.models import model
    >>> found = search(model("llama-3.1-8b"), Wanted(tpot_s=0.05, ttft_s=1.0))
    >>> best = ranked(found, "cost", most=3)
    >>> best[0].usd_per_million <= best[1].usd_per_million and best[0].tpot_s <= 0.05
    True
    """
    values = _values(found, by)
    places = np.flatnonzero(found.good.ravel() & np.isfinite(values))
    order = places[np.lexsort((found.chips.ravel()[places], values[places]))]
    if one_a_chip:
        each = found.size // len(found.choices.chips)
        _, first = np.unique(order // each, return_index=True)
        order = order[np.sort(first)]
    return tuple(candidate(found, int(place)) for place in order[:most])


def _values(found: Searched, by: Measure) -> NDArray[np.float64]:
    """The measure, small is good."""
    columns = {"cost": found.usd_per_million, "memory": -found.memory_margin, "latency": found.tpot_s}
    return np.asarray(columns[by].ravel())


def candidate(found: Searched, place: int) -> Candidate:
    """The candidate at a flat index."""
    chip, plan, weights, cache, batch = np.unravel_index(place, found.good.shape)
    among, usd = found.choices, float(found.usd_per_million.flat[place])
    return Candidate(
        chip=among.chips[chip],
        plan=among.plans[plan],
        weights=among.weights[weights],
        cache=among.caches[cache],
        batch=among.batches[batch],
        replicas=int(found.replicas.flat[place]),
        chips=int(found.chips.flat[place]),
        ttft_s=float(found.ttft_s.flat[place]),
        tpot_s=float(found.tpot_s.flat[place]),
        memory_margin=float(found.memory_margin.flat[place]),
        requests_per_s=float(found.requests_per_s.flat[place]),
        usd_per_million=usd if np.isfinite(usd) else None,
    )


def front(found: Searched) -> tuple[Candidate, ...]:
    """The candidates of which none is both cheaper and faster than another, from the cheapest.

    ``usd_per_million`` against ``tpot_s``: from one to the next, each saves time and costs more.
    """
    cost, time = found.usd_per_million.ravel(), found.tpot_s.ravel()
    places = np.flatnonzero(found.good.ravel() & np.isfinite(cost))
    order = places[np.lexsort((time[places], cost[places]))]
    fastest = np.minimum.accumulate(time[order])
    before = np.concatenate([[np.inf], fastest[:-1]])
    return tuple(candidate(found, int(place)) for place in order[time[order] < before])


def left_out(found: Searched) -> dict[str, int]:
    """How many candidates fall for each reason; one may fall for several."""
    with np.errstate(invalid="ignore"):
        return {
            "cannot be computed or split so": int(np.isnan(found.tpot_s).sum()),
            "memory of the chip is unknown": int(
                (np.isnan(found.memory_margin) & ~np.isnan(found.tpot_s)).sum()
            ),
            "does not fit": int((found.memory_margin < 0).sum()),
            "first token too late": int((found.ttft_s > found.wanted.ttft_s).sum()),
            "tokens too slow": int((found.tpot_s > found.wanted.tpot_s).sum()),
            "no dated price is known": int((found.good & np.isnan(found.usd_per_million)).sum()),
        }
