"""The same work where torchrun has started the processes: each of them runs the command."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from core.engine.parallel.rank import Job, Report, work
from core.errors import RequestError


def started_ranks() -> int | None:
    """How many processes torchrun started, this one among them; None where it did not."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else None


def is_first() -> bool:
    """This process speaks for all."""
    return int(os.environ["RANK"]) == 0


def run_among(job: Job) -> list[Report]:
    """Tell the other processes the job, and do the first one's part; all reports.

    Raises:
        RequestError: torchrun started another number of processes than the job needs.
    """
    if started_ranks() != job.ranks:
        raise RequestError(
            f"torchrun must start tp times pp processes, {job.ranks} here; it started {started_ranks()}. "
            f"Set --nproc-per-node to {job.ranks}."
        )
    return _part(job, job.device)


def assist(device: str) -> None:
    """Do another process's part, as the first one says."""
    _part(None, device)


def _part(job: Job | None, device: str) -> list[Report]:
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    told = [job]
    dist.broadcast_object_list(told)
    agreed, ranks = told[0], dist.get_world_size()
    if agreed is None:
        raise RuntimeError("the first process told no job")
    found: list[Report | None] | None = [None] * ranks if is_first() else None
    dist.gather_object(work(agreed, dist.get_rank()), found)
    dist.destroy_process_group()
    return [each for each in found or [] if each is not None]
