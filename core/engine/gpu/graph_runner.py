"""Decode steps as replays of captured CUDA graphs.

A small step is hundreds of launches, and the host takes longer to give them than the GPU to run them. A
graph gives them all at once. It repeats exactly what was captured, addresses and Python numbers included, so
whatever differs from step to step (tokens, positions, slots, lengths, pages) is a tensor that is filled
before. Shapes are rounded up: the rows to a bucket, the pages to a power of two.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from core.engine.batch import Batch
from core.engine.gpu.block_table import FEW_ROWS, BlockTable
from core.engine.kv_cache import KVPool
from core.engine.runner import StepRunner
from core.engine.transformer import Pass

#: Rows of a graph. More rows than the last keep a GPU busy without one.
BUCKETS: Final = (1, 2, 4, 8, 16, 32)
#: Steps before a capture: they choose kernels, compile, and make room.
_WARM_UPS: Final = 3
#: What a pass leaves besides its logits.
_LEFT: Final = ("hidden", "normed", "qkv", "wide")

#: Captures what a function launches, and returns what launches it again.
Capture = Callable[[Callable[[], None]], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a graph is captured for: rows, pages of each row, and tokens of a page."""

    rows: int
    pages: int
    page_tokens: int


@dataclass(slots=True)
class Graph:
    """One captured graph, its inputs, and what it leaves.

    Attributes:
        rows: [3, R] tokens, positions and slots. blocks: where each row looks.
        padding: of the inputs: what a row that nobody needs looks like.
        left: tensors that every replay fills anew.
    """

    rows: Tensor
    blocks: BlockTable
    padding: tuple[Tensor, Tensor]
    replay: Callable[[], None] = lambda: None
    left: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def blank(cls, shape: Shape, scratch: int, device: torch.device) -> Graph:
        """Inputs of padding alone: token 0 at position 0 writes the scratch slot and sees only that."""
        row = torch.tensor([[0], [0], [scratch]]).to(device)
        cells = torch.tensor([[1, scratch] + [0] * (shape.pages - 1)]).to(device)
        blocks = BlockTable(cells.repeat(shape.rows, 1), shape.page_tokens)
        return cls(row.repeat(1, shape.rows), blocks, (row, cells))

    def capture(self, runner: StepRunner, pool: KVPool, capture: Capture) -> None:
        """Capture one pass over the inputs."""
        tokens, positions, slots = self.rows.unbind()
        batch = Batch.fixed(tokens, positions, slots, self.blocks)

        def work() -> None:
            values = runner.run(batch, pool)
            self.left = {name: getattr(values, name) for name in (*_LEFT, "logits")}

        self.replay = capture(work)

    def fill(self, batch: Batch) -> None:
        """Put a step's inputs in, and padding behind them."""
        count = batch.new_tokens
        self.rows[:, :count] = torch.stack((batch.token_ids, batch.positions, batch.slot_mapping))
        self.blocks.cells[:count] = batch.blocks().cells
        if count < self.rows.shape[1]:
            self.rows[:, count:], self.blocks.cells[count:] = self.padding


class GraphRunner:
    """Steps of few rows by a graph, others by the runner that is captured.

    The last slot of the pool belongs to padding. A pool that another one replaces takes its graphs along.

    Args:
        runner: runs a pass. capture: makes a graph of it.
    """

    def __init__(self, runner: StepRunner, capture: Capture) -> None:
        self._runner, self._capture = runner, capture
        self._pool: Callable[[], Any] = lambda: None
        self.graphs: dict[Shape, Graph] = {}

    @torch.inference_mode()
    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """See ``StepRunner``."""
        if not fits(batch):
            return self._runner.run(batch, pool)
        if self._pool() is not pool:
            self.graphs.clear()
            self._pool = weakref.ref(pool)
        graph = self._graph(batch, pool)
        graph.fill(batch)
        graph.replay()
        values = Pass(batch, pool)
        for name in _LEFT:
            setattr(values, name, graph.left[name])
        values.logits = graph.left["logits"][: batch.new_tokens]
        return values

    def _graph(self, batch: Batch, pool: KVPool) -> Graph:
        """The graph of a step; smaller ones are captured with it, the largest first, as they share memory."""
        blocks, wanted = batch.blocks(), bucket(batch.new_tokens)
        shapes = [Shape(rows, blocks.num_pages, blocks.page_tokens) for rows in BUCKETS if rows <= wanted]
        for shape in reversed(shapes):
            if shape not in self.graphs:
                graph = Graph.blank(shape, pool.num_slots - 1, batch.token_ids.device)
                graph.capture(self._runner, pool, self._capture)
                self.graphs[shape] = graph
        return self.graphs[shapes[-1]]


class CudaCapture:
    """Captures on the current device; all graphs share one pool of memory, as only one runs at a time."""

    def __init__(self) -> None:
        self._memory = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """See ``Capture``."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UPS):
                work()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._memory):
            work()
        return graph.replay


def bucket(rows: int) -> int:
    """The rows of the smallest graph that holds so many.

    >>> bucket(1), bucket(3), bucket(32)
    (1, 4, 32)
    """
    return next(size for size in BUCKETS if rows <= size)


def fits(batch: Batch) -> bool:
    """Whether a graph can run this step: few new tokens of each sequence, all with logits wanted."""
    return batch.new_tokens <= BUCKETS[-1] and all(
        span.new_tokens == span.num_logits <= FEW_ROWS for span in batch.spans
    )
