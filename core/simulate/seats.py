"""Who sits where: the steps of a server as seats by time, and how much of the seats is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from core.simulate.batching import Tables

Doing = Literal["reads", "writes", "waits"]
IDLE: Final = None


class Step(Protocol):
    """A step, simulated or served; see ``SimulatedStep``."""

    @property
    def now(self) -> int:
        """When it ran, in steps."""

    @property
    def requests(self) -> tuple[int, ...]:
        """Who took part."""

    @property
    def reading(self) -> tuple[int, ...]:
        """Who of them read."""

    @property
    def tables(self) -> Tables:
        """The pages of those who hold some."""

    @property
    def held_tokens(self) -> tuple[tuple[int, int], ...]:
        """The tokens in these pages."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """A request on a seat for some steps in a row in which it does the same; ``last`` is included."""

    seat: int
    request: int
    first: int
    last: int
    doing: Doing


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """Seats by time.

    Attributes:
        seats: how many there are. steps: from the first to the last, those included in which nobody ran.
        sittings: what is not idle.
    """

    seats: int
    steps: int
    sittings: tuple[Sitting, ...]

    @property
    def busy(self) -> int:
        """Seats times steps in which a request computed something."""
        return sum(s.last - s.first + 1 for s in self.sittings if s.doing != "waits")

    @property
    def used_share(self) -> float:
        """The share of seats times steps in which a request computed something; 0 where there are none."""
        return self.busy / (self.seats * self.steps) if self.steps else 0.0


def seat_plan(steps: Sequence[Step], seats: int) -> SeatPlan:
    """Give each request the lowest free seat while it holds pages.

    >>> from core.simulate.batching import Arrival, Batching, simulate
    >>> plan = seat_plan(simulate([Arrival(2, 3), Arrival(2, 1)], Batching(9, 2, max_sequences=2)), 2)
    >>> plan.steps, plan.busy, [(s.seat, s.request, s.first, s.last, s.doing) for s in plan.sittings]
    (3, 4, [(0, 0, 0, 0, 'reads'), (0, 0, 1, 2, 'writes'), (1, 1, 0, 0, 'reads')])
    """
    seat_of: dict[int, int] = {}
    sittings: list[Sitting] = []
    open_of: dict[int, Sitting] = {}
    for step in steps:
        holders = [request for request, _ in step.tables]
        seat_of = {request: seat for request, seat in seat_of.items() if request in holders}
        for request in holders:
            if request not in seat_of:
                taken = set(seat_of.values())
                seat_of[request] = next(seat for seat in range(seats) if seat not in taken)
            doing = doing_of(step, request)
            sitting = open_of.get(request)
            if sitting and (sitting.seat, sitting.doing, sitting.last) == (
                seat_of[request],
                doing,
                step.now - 1,
            ):
                open_of[request] = Sitting(sitting.seat, request, sitting.first, step.now, doing)
                continue
            if sitting:
                sittings.append(sitting)
            open_of[request] = Sitting(seat_of[request], request, step.now, step.now, doing)
    sittings += open_of.values()
    ordered = sorted(sittings, key=lambda sitting: (sitting.seat, sitting.first))
    return SeatPlan(seats, steps[-1].now + 1 if steps else 0, tuple(ordered))


def doing_of(step: Step, request: int) -> Doing:
    """What a request does in a step; one that takes no part waits."""
    if request in step.reading:
        return "reads"
    return "writes" if request in step.requests else "waits"
