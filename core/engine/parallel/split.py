"""The same text by one process and by several, and what the several handed to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import torch

from core.analytic.communication import Exchanged, step_exchanges
from core.analytic.parallel import ParallelPlan, stages
from core.analytic.split_record import CollectiveRecord, SplitRecord
from core.analytic.split_rules import group_violations, split_violations
from core.catalog.model import ModelSpec
from core.engine.engine import Engine
from core.engine.parallel.launch import launch
from core.engine.parallel.rank import Job, Report, Written, write
from core.errors import RequestError

MOST_RANKS: Final = 8


def check_plan(spec: ModelSpec, plan: ParallelPlan, weights: str, device: str) -> None:
    """Refuse what cannot be split so, or not on this machine.

    Raises:
        RequestError: a sentence on the first thing that does not hold.
    """
    ranks = plan.tp * plan.pp
    if not 2 <= ranks <= MOST_RANKS:
        raise RequestError(
            f"A split must have 2 to {MOST_RANKS} processes; tp {plan.tp} times pp {plan.pp} are {ranks}. "
            "Choose other degrees."
        )
    found = [*split_violations(spec, plan), *group_violations(spec, plan, weights)]
    if found:
        raise RequestError(found[0].sentence)
    if device == "cuda" and torch.cuda.device_count() < ranks:
        raise RequestError(
            f"Each process needs a GPU of its own; {ranks} were asked for and torch finds "
            f"{torch.cuda.device_count()}. Choose fewer processes, or the device cpu."
        )


def make_job(
    engine: Engine,
    model: str,
    prompt_ids: list[int],
    plan: ParallelPlan,
    *,
    max_tokens: int,
    end_tokens: frozenset[int] | None = None,
) -> Job:
    """Check a plan, and say what each process is to do.

    Args:
        engine: the whole model in one process, whose formats and device all others take.
        model: its name, by which the processes open it themselves.
        prompt_ids: the prompt.
        plan: how many share each layer, and how many stages there are.
        max_tokens: the most new tokens.
        end_tokens: tokens that end the text; the model's own unless given.

    Raises:
        RequestError: the model cannot be split so.
    """
    check_plan(engine.spec, plan, engine.weights, engine.device.type)
    return Job(
        model=model,
        weights=engine.weights,
        kv=engine.kv,
        device="cuda" if engine.device.type == "cuda" else "cpu",
        plan=plan,
        prompt_ids=tuple(prompt_ids),
        max_tokens=max_tokens,
        end_tokens=end_tokens,
        threads=max(torch.get_num_threads() // (plan.tp * plan.pp), 1),
    )


def compare(engine: Engine, job: Job, run: Callable[[Job], list[Report]] = launch) -> SplitRecord:
    """Continue the prompt greedily with ``engine`` alone, then with all processes.

    Args:
        engine: the whole model in one process.
        job: made from it by ``make_job``.
        run: runs the job; starts the processes here unless given.

    Raises:
        RequestError: the prompt is outside the limits. JobError: the processes did not finish.
    """
    threads = torch.get_num_threads()
    alone, _ = write(engine, job)
    return _record(job, engine, alone, run(job), threads)


def _record(job: Job, engine: Engine, alone: Written, reports: list[Report], threads: int) -> SplitRecord:
    together, last = reports[0].written, reports[-1].written
    difference = np.abs(last.logits - alone.logits).max() / np.abs(alone.logits).max()
    return SplitRecord(
        model=job.model,
        weights=job.weights,
        kv=job.kv,
        device=job.device,
        backend=job.backend,
        tp=job.plan.tp,
        pp=job.plan.pp,
        threads=job.threads,
        single_threads=threads,
        prompt_tokens=len(job.prompt_ids),
        steps=len(together.steps),
        token_ids=tuple(together.token_ids),
        single_token_ids=tuple(alone.token_ids),
        text=engine.decode(together.token_ids),
        logits_error=float(difference),
        stored_bytes=tuple(report.written.stored_bytes for report in reports),
        single_stored_bytes=alone.stored_bytes,
        collectives=tuple(_collectives(job, engine.spec, reports)),
        tokens_per_s=together.tokens_per_s,
        single_tokens_per_s=alone.tokens_per_s,
    )


def _collectives(job: Job, spec: ModelSpec, reports: list[Report]) -> list[CollectiveRecord]:
    """One record for each stage and name; the processes of a stage do the same."""
    found = []
    predicted: dict[str, Exchanged] = {}
    for stage in range(job.plan.pp):
        before, predicted = predicted, _predicted(job, spec, stage, reports[0].written.steps)
        if "stage_send" in before:
            predicted = {"stage_receive": before["stage_send"], **predicted}
        members = reports[stage * job.plan.tp : (stage + 1) * job.plan.tp]
        for name, calls in members[0].calls.items():
            times_s = np.concatenate([member.calls[name].times_s for member in members])
            low, middle, high = (float(value) for value in np.percentile(times_s, (10, 50, 90)))
            expected = predicted.get(name)
            found.append(
                CollectiveRecord(
                    stage=stage,
                    name=name,
                    ranks=calls.ranks,
                    count=len(calls.times_s),
                    message_bytes=calls.message_bytes,
                    median_s=middle,
                    p10_s=low,
                    p90_s=high,
                    predicted_count=None if expected is None else expected.count,
                    predicted_bytes=None if expected is None else expected.message_bytes,
                )
            )
    return found


def _predicted(job: Job, spec: ModelSpec, stage: int, steps: list[tuple[int, int]]) -> dict[str, Exchanged]:
    """What the operator table says that a process of a stage exchanges over all steps."""
    sums: dict[str, Exchanged] = {}
    known: dict[int, dict[str, Exchanged]] = {}  # an exchange does not depend on the context
    for new_tokens, context in steps:
        if new_tokens not in known:
            known[new_tokens] = step_exchanges(
                spec,
                job.plan,
                stages(spec, job.plan)[stage],
                new_tokens=new_tokens,
                context=context,
                weights=job.weights,
                kv=job.kv,
            )
        for name, one in known[new_tokens].items():
            sums[name] = sums[name] + one if name in sums else one
    return sums
