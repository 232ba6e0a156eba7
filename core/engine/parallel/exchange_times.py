"""What an exchange takes between processes that do nothing else: the seconds behind a link's speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from core.analytic.parallel import ParallelPlan
from core.engine.parallel.wire import Wire

_FLOAT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class ExchangeTask:
    """All-reduces and all-gathers of several sizes, a round of them after another.

    Attributes:
        ranks: processes. message_bytes: of the exchanges, multiples of 4 bytes a process.
        rounds: how often all sizes take their turn, so that a slow moment falls on all of them; one round
            more comes before, which makes connections and room.
        repeats: of each size in a round. threads: processor threads of each process.
    """

    ranks: int
    message_bytes: tuple[int, ...]
    rounds: int
    repeats: int
    threads: int = 1

    @property
    def backend(self) -> str:
        """How the processes talk: over the processor's memory, as a split model on it does."""
        return "gloo"

    def work(self, rank: int) -> dict[tuple[str, int], list[float]]:
        """Seconds of each exchange, by ("all_reduce" or "all_gather", bytes of the message).

        They are timed where a split model's are (``Wire``), so they mean the same.
        """
        torch.set_num_threads(self.threads)
        wire = Wire(ParallelPlan(tp=self.ranks), rank, torch.device("cpu"))
        self._round(wire)
        wire.calls = {}
        for _ in range(self.rounds):
            self._round(wire)
        return {
            (kind, size): wire.calls[f"{kind} {size}"].times_s
            for kind in ("all_reduce", "all_gather")
            for size in self.message_bytes
        }

    def _round(self, wire: Wire) -> None:
        for size in self.message_bytes:
            whole = torch.zeros(size // _FLOAT_BYTES)
            part = torch.zeros(size // (_FLOAT_BYTES * self.ranks))
            for _ in range(self.repeats):
                wire.all_reduce(f"all_reduce {size}", whole)
            for _ in range(self.repeats):
                wire.all_gather(f"all_gather {size}", part)
