"""What one of the processes does: load its share, write the text with the others, report."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from core.analytic.parallel import ParallelPlan
from core.engine.batch import Batch, Sequence
from core.engine.engine import Engine
from core.engine.files.models import open_checkpoint
from core.engine.parallel.rank_engine import RankEngine
from core.engine.parallel.wire import Calls, Wire
from core.engine.sampling import GREEDY

#: Tokens of the run before the one that counts, which chooses primitives and makes room.
_WARM_UP_TOKENS: Final = 4


@dataclass(frozen=True, slots=True)
class Job:
    """What all processes are to do; small, since each gets a copy.

    Attributes:
        model, weights, kv, device: as ``Engine.load`` takes them. plan: how it is split.
        prompt_ids: the prompt. max_tokens: the most new tokens. end_tokens: those that end the text.
        threads: processor threads of each process.
    """

    model: str
    weights: str
    kv: str
    device: Literal["cpu", "cuda"]
    plan: ParallelPlan
    prompt_ids: tuple[int, ...]
    max_tokens: int
    end_tokens: frozenset[int] | None
    threads: int

    @property
    def ranks(self) -> int:
        """Processes."""
        return self.plan.tp * self.plan.pp

    @property
    def backend(self) -> str:
        """How the processes talk."""
        return "nccl" if self.device == "cuda" else "gloo"

    def work(self, rank: int) -> Report:
        """Do one process's part; the process group must stand."""
        return work(self, rank)


@dataclass(frozen=True, slots=True)
class Written:
    """What an engine wrote: tokens, their rate, (new tokens, context) of each step, and what it keeps.

    Attributes:
        logits: the prompt's last row, empty where a stage has none.
    """

    token_ids: list[int]
    tokens_per_s: float | None
    steps: list[tuple[int, int]]
    stored_bytes: int
    logits: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Report:
    """What one process did: its text, which is that of all, and its exchanges."""

    rank: int
    written: Written
    calls: dict[str, Calls]


def work(job: Job, rank: int) -> Report:
    """Do one process's part; the process group must stand."""
    device = torch.device(job.device, rank) if job.device == "cuda" else torch.device("cpu")
    if job.device == "cuda":
        torch.cuda.set_device(device)
    torch.set_num_threads(job.threads)
    wire = Wire(job.plan, rank, device)
    engine = RankEngine(open_checkpoint(job.model), wire, weights=job.weights, kv=job.kv, device=device)
    logging.getLogger(__name__).debug("rank %d is ready", rank)
    written, calls = write(engine, job, wire)
    return Report(rank, written, calls)


def write(engine: Engine, job: Job, wire: Wire | None = None) -> tuple[Written, dict[str, Calls]]:
    """Continue the prompt once to warm up and once to be counted, and look at the prompt's logits.

    The same for one process alone, which has no wire and no exchanges.
    """
    prompt = list(job.prompt_ids)
    engine.generate(prompt, GREEDY, max_tokens=_WARM_UP_TOKENS, end_tokens=frozenset())
    if wire is not None:
        dist.barrier()
        wire.calls = {}
    result = engine.generate(prompt, GREEDY, max_tokens=job.max_tokens, end_tokens=job.end_tokens)
    calls = {} if wire is None else wire.calls
    if wire is not None:
        wire.calls = {}
    batch = Batch.build([(Sequence(prompt), len(prompt))], engine.device)
    logits = engine.runner.run(batch, engine.reserve(len(prompt))).logits
    written = Written(
        token_ids=result.token_ids,
        tokens_per_s=result.tokens_per_s,
        steps=[(step.new_tokens, step.context_tokens) for step in result.steps],
        stored_bytes=sum(entry["weight_stored_bytes"] for entry in engine.tensor_bytes().values()),
        logits=logits[-1:].float().cpu().numpy(),
    )
    return written, calls
