"""A forward pass and an answer on the chips of a plan: times, traffic and idle shares.

A pipeline of p stages works on m micro-batches at once, ``m = min(p, batch)``. A prefill fills it and
runs dry: the sum of the stages, and ``m - 1`` times the slowest. Decode goes round: a token of every
sequence takes the longer of one way through all stages and m turns at the slowest. With one stage both
are the time of its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.analytic.answer import Speed, beside_contexts, mean_over_answer
from core.analytic.latency import step_time
from core.analytic.machine import Machine
from core.analytic.parallel import ParallelPlan, Stage, device_operators, each_stage, stages
from core.analytic.table import Operators
from core.catalog.model import ModelSpec
from core.units import Number

#: What a pass is: it fills an empty pipeline, or it is one of many that go round.
Phase = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True, eq=False)
class PassOnChips:
    """One pass of a whole batch through all stages; arrays of the sweep's shape.

    Attributes:
        tables: a chip's operators for one micro-batch, one table a stage.
        stage_s: seconds of one micro-batch in each stage, ``[stages, *sweep]``.
        micro_batches: how many there are. time_s: until all of them are through.
    """

    tables: tuple[Operators, ...]
    stage_s: NDArray[np.float64]
    micro_batches: NDArray[np.float64]
    time_s: NDArray[np.float64]

    @property
    def idle_share(self) -> NDArray[np.float64]:
        """The share of the pass in which the chips of each stage wait: ``[stages, *sweep]``."""
        return np.asarray(1 - self.micro_batches * self.stage_s / self.time_s)

    @property
    def link_bytes(self) -> NDArray[np.float64]:
        """What one chip of each stage sends in the pass: ``[stages, *sweep]``."""
        sent = [np.asarray(table.total("link_bytes")) for table in self.tables]
        return np.asarray(np.stack(np.broadcast_arrays(*sent, self.micro_batches)[:-1]) * self.micro_batches)


def pass_on_chips(
    model: ModelSpec,
    machine: Machine,
    plan: ParallelPlan,
    phase: Phase,
    *,
    batch: Number,
    new_tokens: Number,
    context: Number,
    weights: str,
    kv: str,
) -> PassOnChips:
    """One pass of a replica. Latent attention is expanded in a prefill and absorbed in decode.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
        ScenarioError: a count is below one, or the machine has no link and needs one.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> found = pass_on_chips(model("llama-3.3-70b"), chip, ParallelPlan(tp=4, pp=2), "decode", batch=8,
    ...     new_tokens=1, context=4096, weights="bf16", kv="bf16")
    >>> found.stage_s.shape, float(found.idle_share.max()) < 0.2
    ((2,), True)
    """
    sequences = np.asarray(batch, np.float64)
    micro = np.minimum(float(plan.pp), sequences)

    def table(stage: Stage) -> Operators:
        return device_operators(
            model,
            plan,
            stage,
            batch=sequences / micro,
            new_tokens=new_tokens,
            context=context,
            weights=weights,
            kv=kv,
            latent="expanded" if phase == "prefill" else "absorbed",
        )

    tables = each_stage(stages(model, plan), table)
    each = np.stack(np.broadcast_arrays(*_times(tables, machine)))
    through, slowest = each.sum(axis=0), each.max(axis=0)
    filled = through + (micro - 1) * slowest
    time_s = filled if phase == "prefill" else np.maximum(through, micro * slowest)
    return PassOnChips(tables, each, np.asarray(micro), np.asarray(time_s))


def _times(tables: tuple[Operators, ...], machine: Machine) -> list[NDArray[np.float64]]:
    """Seconds of each table; a table that stands for several stages is timed once."""
    known = {
        id(table): step_time(table, machine) for table in {id(table): table for table in tables}.values()
    }
    return [known[id(table)] for table in tables]


def speed_on_chips(
    model: ModelSpec,
    machine: Machine,
    plan: ParallelPlan,
    *,
    batch: Number,
    input_tokens: Number,
    output_tokens: Number,
    weights: str,
    kv: str,
) -> Speed:
    """TTFT, TPOT, end-to-end time and rate of ``batch`` equal requests on one replica.

    As ``answer.speed``, of one replica. Ignored: waiting, and prefills that share a pass with decode.

    Raises:
        FormatError, ScenarioError: as ``pass_on_chips``.
    """
    first = pass_on_chips(
        model,
        machine,
        plan,
        "prefill",
        batch=batch,
        new_tokens=input_tokens,
        context=input_tokens,
        weights=weights,
        kv=kv,
    ).time_s
    each = mean_step_s(
        model,
        machine,
        plan,
        batch=batch,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        weights=weights,
        kv=kv,
    )
    return Speed.of(first, each, output_tokens=output_tokens, batch=batch)


def mean_step_s(
    model: ModelSpec,
    machine: Machine,
    plan: ParallelPlan,
    *,
    batch: Number,
    input_tokens: Number,
    output_tokens: Number,
    weights: str,
    kv: str,
) -> NDArray[np.float64]:
    """TPOT alone: the mean decode step of an answer; not a number for one token.

    Raises:
        FormatError, ScenarioError: as ``pass_on_chips``.
    """

    def step_s(context: NDArray[np.float64]) -> NDArray[np.float64]:
        made = pass_on_chips(
            model,
            machine,
            plan,
            "decode",
            batch=beside_contexts(batch),
            new_tokens=1,
            context=context,
            weights=weights,
            kv=kv,
        )
        return made.time_s

    return mean_over_answer(input_tokens, output_tokens, step_s)
