"""Batching policies: when may waiting requests join? Everything else about batching is the same.

Time is counted in steps, so that a trace gives the same batches on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Queue:
    """What a policy may look at before a step.

    Attributes:
        waiting, running: requests. waited: steps that the first of those waiting has waited.
        size: the most that may run at once. more: others will still come.
    """

    waiting: int
    running: int
    waited: int
    size: int
    more: bool


class Policy(Protocol):
    """Opens or closes the door before each step."""

    def admits(self, queue: Queue) -> bool:
        """Whether waiting requests may join this step, first come first."""


@dataclass(frozen=True, slots=True)
class Static:
    """A batch is full before it starts, and nobody joins until all of it is done."""

    def admits(self, queue: Queue) -> bool:
        """See ``Policy``."""
        return not queue.running and (queue.waiting >= queue.size or not queue.more)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """As static, but a batch that is not full starts when its first request has waited long enough."""

    most_wait: int = 8

    def admits(self, queue: Queue) -> bool:
        """See ``Policy``."""
        return not queue.running and (
            queue.waiting >= queue.size or not queue.more or queue.waited >= self.most_wait
        )


@dataclass(frozen=True, slots=True)
class Continuous:
    """Requests join and leave at every step (https://www.usenix.org/conference/osdi22/presentation/yu)."""

    def admits(self, queue: Queue) -> bool:
        """See ``Policy``."""
        return queue.waiting > 0


#: The policies under the names that requests give them.
POLICIES: Final[dict[str, Policy]] = {
    "static": Static(),
    "dynamic": Dynamic(),
    "continuous": Continuous(),
}
