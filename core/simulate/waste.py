"""What of the cache's held slots is filled: now, later, or never.

A page is held whole. Slots that its request will still fill are reserved for later; those behind the
request's last token stay empty for as long as it is there. The two kinds have their names from the paper
on PagedAttention (https://arxiv.org/abs/2309.06180): reserved slots, and internal fragmentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.simulate.batching import Arrival
from core.simulate.seats import Step


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots of the held pages, or their sums over steps: filled, filled later, and never filled."""

    filled: int
    later: int
    never: int

    @property
    def held(self) -> int:
        """All of them."""
        return self.filled + self.later + self.never

    @property
    def waste_share(self) -> float:
        """The share that holds nothing now; 0 where nothing is held."""
        return 1 - self.filled / self.held if self.held else 0.0

    def __add__(self, other: Slots) -> Slots:
        """Both together."""
        return Slots(self.filled + other.filled, self.later + other.later, self.never + other.never)


@dataclass(frozen=True, slots=True)
class PageUse:
    """One held page: which request's (the first that holds it), its place there, and its slots."""

    page: int
    request: int
    place: int
    holders: int
    slots: Slots


def last_length(arrival: Arrival) -> int:
    """The tokens that a request leaves in the cache at most: its last one is never computed."""
    return arrival.prompt_tokens + arrival.new_tokens - 1


def page_uses(step: Step, trace: Sequence[Arrival], page_tokens: int) -> list[PageUse]:
    """Every held page of a step once, by its number.

    >>> from core.simulate.batching import Batching, simulate
    >>> trace = [Arrival(5, 4)]
    >>> [use.slots for use in page_uses(simulate(trace, Batching(9, 4))[0], trace, 4)]
    [Slots(filled=4, later=0, never=0), Slots(filled=1, later=3, never=0)]
    """
    tokens = dict(step.held_tokens)
    uses: dict[int, PageUse] = {}
    for request, pages in step.tables:
        for place, page in enumerate(pages):
            before = uses.get(page)
            if before is not None:
                uses[page] = PageUse(page, before.request, before.place, before.holders + 1, before.slots)
                continue
            start = place * page_tokens
            filled = min(max(tokens[request] - start, 0), page_tokens)
            final = min(max(last_length(trace[request]) - start, filled), page_tokens)
            slots = Slots(filled, final - filled, page_tokens - final)
            uses[page] = PageUse(page, request, place, 1, slots)
    return [uses[page] for page in sorted(uses)]


def slots(step: Step, trace: Sequence[Arrival], page_tokens: int) -> Slots:
    """All slots of a step's held pages; a page that several hold counts once."""
    return sum((use.slots for use in page_uses(step, trace, page_tokens)), Slots(0, 0, 0))


def all_slots(steps: Sequence[Step], trace: Sequence[Arrival], page_tokens: int) -> Slots:
    """The sum over all steps: its share of waste is the mean over time, weighted by what is held."""
    return sum((slots(step, trace, page_tokens) for step in steps), Slots(0, 0, 0))


def fullest(steps: Sequence[Step]) -> int:
    """The index of the first step in which most pages are held."""
    return max(
        range(len(steps)), key=lambda index: len({p for _, pages in steps[index].tables for p in pages})
    )
