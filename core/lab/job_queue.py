"""The queue of one device: first come, first served, one job an owner.

Because an owner has at most one job, waiting or running, nobody can take two turns in a row while
someone else waits: serving in the order of arrival is already round robin by owner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from core.lab.ticket import Ticket

#: How much the newest duration of a kind of job counts in the estimate of the next one's.
_NEWEST_WEIGHT: Final = 0.5


class JobQueue:
    """Jobs that wait, the job that runs, and how long each kind of job usually takes."""

    def __init__(self) -> None:
        self.running: Ticket | None = None
        self._waiting: deque[Ticket] = deque()
        self._usual_s: dict[str, float] = {}

    def __len__(self) -> int:
        """Jobs that wait; the running one is not among them."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[Ticket]:
        """The running job, then the waiting ones in their order; safe while jobs are removed."""
        yield from [self.running] if self.running else []
        yield from tuple(self._waiting)

    def add(self, ticket: Ticket) -> None:
        """Put a job at the end."""
        self._waiting.append(ticket)

    def remove(self, ticket: Ticket) -> bool:
        """Take a waiting job out; False where it does not wait."""
        if ticket not in self._waiting:
            return False
        self._waiting.remove(ticket)
        return True

    def start_next(self, now: float) -> Ticket | None:
        """Make the first waiting job the running one; None where one runs or none waits."""
        if self.running or not self._waiting:
            return None
        self.running = self._waiting.popleft()
        self.running.start(now)
        return self.running

    def learn(self, kind: str, duration_s: float) -> None:
        """Take one finished job into the estimate: an average in which the newest counts half."""
        usual = self._usual_s.get(kind, duration_s)
        self._usual_s[kind] = usual + _NEWEST_WEIGHT * (duration_s - usual)

    def position(self, ticket: Ticket) -> int:
        """Jobs ahead of a waiting one; 0 for any other."""
        if ticket not in self._waiting:
            return 0
        return self._waiting.index(ticket) + (self.running is not None)

    def wait_s(self, ticket: Ticket | None, now: float) -> float | None:
        """Seconds until a waiting job starts; for None, until one that joined now would.

        The sum of what the jobs ahead usually take; None where a kind among them is new.
        """
        ahead = list(self._waiting)
        if ticket is not None:
            if ticket not in self._waiting:
                return None
            ahead = ahead[: self._waiting.index(ticket)]
        total_s = 0.0
        for other in [*([self.running] if self.running else []), *ahead]:
            usual = self._usual_s.get(other.kind)
            if usual is None:
                return None
            spent = now - other.started_at if other is self.running else 0.0
            total_s += max(usual - spent, 0.0)
        return total_s
