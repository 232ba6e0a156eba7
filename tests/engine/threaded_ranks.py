"""Ranks as threads of one process: what ``torch.distributed`` does for them, with barriers.

The real exchanges over gloo are tested in a few slow runs; this makes every way of splitting a model
cheap to try.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import BrokenBarrierError
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

from core.engine.parallel import rank, wire

Result = TypeVar("Result")


class Group:
    """Some ranks that meet."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
        self.held: dict[int, Tensor] = {}
        self.barrier = threading.Barrier(len(ranks), timeout=300)

    def meet(self, rank: int, tensor: Tensor) -> dict[int, Tensor]:
        """Everybody's tensors, once all are there."""
        self.held[rank] = tensor.clone()
        self.barrier.wait()
        found = dict(self.held)
        self.barrier.wait()
        return found


class ThreadedDistributed:
    """The part of ``torch.distributed`` that the engine uses."""

    def __init__(self, ranks: int) -> None:
        self._local = threading.local()
        self._all = Group(list(range(ranks)))
        self._groups: list[Group] = []
        self._lock = threading.Lock()
        self._mail = {(first, second): _Mailbox() for first in range(ranks) for second in range(ranks)}

    def enter(self, rank: int) -> None:
        self._local.rank, self._local.made = rank, 0

    def new_group(self, ranks: list[int]) -> Group:
        with self._lock:
            made: int = self._local.made
            if made == len(self._groups):
                self._groups.append(Group(ranks))
            self._local.made += 1
            return self._groups[made]

    def all_reduce(self, tensor: Tensor, group: Group) -> None:
        found = group.meet(self._local.rank, tensor)
        tensor.copy_(torch.stack([found[number] for number in group.ranks]).sum(dim=0))

    def all_gather(self, parts: list[Tensor], tensor: Tensor, group: Group) -> None:
        found = group.meet(self._local.rank, tensor)
        for part, number in zip(parts, group.ranks, strict=True):
            part.copy_(found[number])

    @torch.inference_mode()
    def broadcast(self, tensor: Tensor, source: int, group: Group) -> None:
        tensor.copy_(group.meet(self._local.rank, tensor)[source])

    def send(self, tensor: Tensor, to: int) -> None:
        self._mail[self._local.rank, to].put(tensor.clone())

    def recv(self, tensor: Tensor, source: int) -> None:
        tensor.copy_(self._mail[source, self._local.rank].take())

    def break_off(self) -> None:
        """One has failed: nobody waits for it."""
        for group in (self._all, *self._groups):
            group.barrier.abort()

    def barrier(self) -> None:
        self._all.meet(self._local.rank, torch.empty(0))


class _Mailbox:
    def __init__(self) -> None:
        self._letters: list[Tensor] = []
        self._there = threading.Semaphore(0)

    def put(self, tensor: Tensor) -> None:
        self._letters.append(tensor)
        self._there.release()

    def take(self) -> Tensor:
        assert self._there.acquire(timeout=300)
        return self._letters.pop(0)


def on_threads(ranks: int, work: Callable[[int], Result], monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """``work`` of every rank at once; their results by rank."""
    fake: Any = ThreadedDistributed(ranks)
    monkeypatch.setattr(wire, "dist", fake)
    monkeypatch.setattr(rank, "dist", fake)

    def run(number: int) -> Result:
        fake.enter(number)
        try:
            return work(number)
        except BaseException:
            fake.break_off()
            raise

    with ThreadPoolExecutor(ranks) as pool:
        asked = [pool.submit(run, number) for number in range(ranks)]
    problems = [each.exception() for each in asked]
    for problem in sorted(filter(None, problems), key=lambda each: isinstance(each, BrokenBarrierError)):
        raise problem
    return [each.result() for each in asked]
