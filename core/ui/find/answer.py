"""What the page finds: the best of each measure, the front, and why the others are left out.

The arrays of a search are large, so only what is shown of them is kept; what a room full of people asks
for again and again is remembered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from core.analytic.cost import HourlyPrice
from core.analytic.search.candidates import Searched, search
from core.analytic.search.ranking import MEASURES, Candidate, Measure, front, left_out, ranked
from core.analytic.search.request import Wanted
from core.catalog.accelerator import Accelerator
from core.catalog.model import ModelSpec
from core.errors import ScenarioError
from core.ui.find.choices import groups

#: Rows of the ranked list.
MOST_SHOWN: Final = 10
_EVERY: Final = 1000
_MOST_REMEMBERED: Final = 128


@dataclass(frozen=True, slots=True)
class Closest:
    """How near the candidates come to what is asked.

    Attributes:
        computed, fitting: candidates that can be computed, and of those the ones that fit.
        late, slow: of those that fit, how many give the first token, and each further one, too late.
        best_margin: free share of memory of the roomiest; negative where none fits, None where unknown.
        ttft_s, tpot_s: the shortest of those that fit; None where none does.
        tpot_in_time_s: the shortest of those whose first token comes in time; None where none's does.
    """

    computed: int
    fitting: int
    late: int
    slow: int
    best_margin: float | None
    ttft_s: float | None
    tpot_s: float | None
    tpot_in_time_s: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found.

    Attributes:
        size, good: candidates that were looked at, and those that do what is asked.
        best: for each measure the best of each chip, the first ``MOST_SHOWN``.
        of_each_chip: the cheapest of every chip. front: none is both cheaper and faster than another.
        left_out: how many fall for each reason. closest: how near they come.
    """

    size: int
    good: int
    best: Mapping[Measure, tuple[Candidate, ...]]
    of_each_chip: tuple[Candidate, ...]
    front: tuple[Candidate, ...]
    left_out: Mapping[str, int]
    closest: Closest


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; equal questions have one answer.

    Attributes:
        model: what is served. wanted: tokens and limits.
        weights, cache: the scenario's formats, which take part beside the usual ones.
        chips: to choose from; announced ones are left out. prices: typed in, by chip id.
    """

    model: ModelSpec
    wanted: Wanted
    weights: str
    cache: str
    chips: tuple[Accelerator, ...]
    prices: tuple[tuple[str, HourlyPrice], ...] = ()

    def __hash__(self) -> int:
        ids = tuple(chip.id for chip in self.chips)
        return hash((self.model.id, self.wanted, self.weights, self.cache, ids, self.prices))


@lru_cache(maxsize=_MOST_REMEMBERED)
def find(question: Question) -> Answer:
    """Search for deployments of a model.

    Raises:
        FormatError: the scenario's format cannot be used so.
        ScenarioError: there is no chip to choose from, or the model has too many different layers.
    """
    prices = dict(question.prices)
    parts = [
        search(question.model, question.wanted, choices)
        for choices in groups(question.model, question.chips, (question.weights, question.cache), prices)
    ]
    if not parts:
        raise ScenarioError("A search needs one chip that is on sale or more; none is known. Bring a chip.")
    reasons: Counter[str] = Counter()
    for part in parts:
        reasons.update(left_out(part))
    return Answer(
        size=sum(part.size for part in parts),
        good=sum(int(part.good.sum()) for part in parts),
        best={by: _best(parts, by)[:MOST_SHOWN] for by in MEASURES},
        of_each_chip=_best(parts, "cost"),
        front=_front([one for part in parts for one in front(part)]),
        left_out=dict(reasons),
        closest=_closest(parts),
    )


def _best(parts: Sequence[Searched], by: Measure) -> tuple[Candidate, ...]:
    every = [one for part in parts for one in ranked(part, by, _EVERY)]
    return tuple(sorted(every, key=lambda one: (_value(one, by), one.chips)))


def _value(one: Candidate, by: Measure) -> float:
    if by == "cost":
        return math.inf if one.usd_per_million is None else one.usd_per_million
    return -one.memory_margin if by == "memory" else one.tpot_s


def _front(each: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The front of the fronts of all groups, from the cheapest."""
    kept: list[Candidate] = []
    for one in sorted(each, key=lambda one: (_value(one, "cost"), one.tpot_s)):
        if not kept or one.tpot_s < kept[-1].tpot_s:
            kept.append(one)
    return tuple(kept)


def _closest(parts: Sequence[Searched]) -> Closest:
    wanted = parts[0].wanted
    ttft, tpot, margin = (
        np.concatenate([getattr(part, name).ravel() for part in parts])
        for name in ("ttft_s", "tpot_s", "memory_margin")
    )
    computed = ~np.isnan(tpot)
    known = computed & ~np.isnan(margin)
    fits = known & (margin >= 0)
    in_time = fits & (ttft <= wanted.ttft_s)
    return Closest(
        computed=int(computed.sum()),
        fitting=int(fits.sum()),
        late=int((fits & (ttft > wanted.ttft_s)).sum()),
        slow=int((fits & (tpot > wanted.tpot_s)).sum()),
        best_margin=float(margin[known].max()) if known.any() else None,
        ttft_s=float(ttft[fits].min()) if fits.any() else None,
        tpot_s=float(tpot[fits].min()) if fits.any() else None,
        tpot_in_time_s=float(tpot[in_time].min()) if in_time.any() else None,
    )
