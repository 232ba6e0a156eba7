"""The exchanges between processes, each counted on its real tensor and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from core.analytic.parallel import ParallelPlan
from core.engine.clock import synchronise


@dataclass(slots=True)
class Calls:
    """Exchanges of one name: how many take part, bytes of all messages, seconds of each."""

    ranks: int
    message_bytes: int = 0
    times_s: list[float] = field(default_factory=list)


class Wire:
    """One process's place among all: process ``stage * tp + place``.

    Attributes:
        place: among the processes that share its layers. stage: its stage.
        calls: what it exchanged, by name.
    """

    def __init__(self, plan: ParallelPlan, rank: int, device: torch.device) -> None:
        self.plan, self.rank = plan, rank
        self.stage, self.place = divmod(rank, plan.tp)
        self.calls: dict[str, Calls] = {}
        self._device = device
        # Every process makes every group, in the same order.
        beside = [
            dist.new_group([stage * plan.tp + place for place in range(plan.tp)]) for stage in range(plan.pp)
        ]
        behind = [
            dist.new_group([stage * plan.tp + place for stage in range(plan.pp)]) for place in range(plan.tp)
        ]
        self._beside, self._behind = beside[self.stage], behind[self.place]

    def all_reduce(self, name: str, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over the processes of the stage."""
        self._timed(name, self.plan.tp, tensor.nbytes, lambda: dist.all_reduce(tensor, group=self._beside))

    def all_gather(self, name: str, tensor: Tensor) -> Tensor:
        """The columns of all processes of the stage side by side."""
        parts = [torch.empty_like(tensor) for _ in range(self.plan.tp)]
        size = self.plan.tp * tensor.nbytes
        self._timed(
            name, self.plan.tp, size, lambda: dist.all_gather(parts, tensor.contiguous(), group=self._beside)
        )
        return torch.cat(parts, dim=-1)

    def send(self, name: str, tensor: Tensor) -> None:
        """Hand ``tensor`` to the same place of the next stage."""
        self._timed(name, 2, tensor.nbytes, lambda: dist.send(tensor, self.rank + self.plan.tp))

    def receive(self, name: str, tensor: Tensor) -> None:
        """Fill ``tensor`` from the same place of the stage before."""
        self._timed(name, 2, tensor.nbytes, lambda: dist.recv(tensor, self.rank - self.plan.tp))

    def tell(self, name: str, tensor: Tensor) -> None:
        """Fill ``tensor`` everywhere with what the last stage has."""
        last = (self.plan.pp - 1) * self.plan.tp + self.place
        self._timed(
            name, self.plan.pp, tensor.nbytes, lambda: dist.broadcast(tensor, last, group=self._behind)
        )

    def _timed(self, name: str, ranks: int, message_bytes: int, exchange: Callable[[], object]) -> None:
        synchronise(self._device)
        start_s = time.perf_counter()
        exchange()
        synchronise(self._device)
        calls = self.calls.setdefault(name, Calls(ranks))
        calls.times_s.append(time.perf_counter() - start_s)
        calls.message_bytes += message_bytes
