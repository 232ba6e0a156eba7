"""What a served model keeps in memory, against what the chip has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.kv_cache import cache_bytes, index_bytes, state_bytes
from core.analytic.machine import Machine
from core.analytic.parallel import ONE_CHIP, ParallelPlan, Stage, device_operators, each_stage, stages
from core.analytic.params import weight_plan
from core.analytic.table import Operators
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.model import ModelSpec
from core.units import Number

#: Prompt tokens that a serving engine passes through the model at once; longer prompts go in chunks.
#: https://docs.vllm.ai/en/latest/configuration/optimization/ (max_num_batched_tokens), 2026-11-29
CHUNK_TOKENS: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """Bytes on one chip by what they are for; arrays of the sweep's shape.

    Attributes:
        capacity_bytes: what the chip offers to software; None where that is unknown.
        weights_bytes: its parameters, scales included. kv_bytes: the cache at its fullest, with the
            state of layers that keep one and the keys of sparse attention's indexers.
        activation_bytes: the largest tensors alive at once, logits among them.
        overhead_bytes: driver, framework and recorded graphs.
    """

    capacity_bytes: float | None
    weights_bytes: NDArray[np.float64]
    kv_bytes: NDArray[np.float64]
    activation_bytes: NDArray[np.float64]
    overhead_bytes: NDArray[np.float64]

    @property
    def total_bytes(self) -> NDArray[np.float64]:
        """Everything together."""
        return self.weights_bytes + self.kv_bytes + self.activation_bytes + self.overhead_bytes

    @property
    def fits(self) -> NDArray[np.bool_] | None:
        """Whether everything fits; None where the capacity is unknown."""
        if self.capacity_bytes is None:
            return None
        return np.asarray(self.total_bytes <= self.capacity_bytes)


def footprint(
    model: ModelSpec,
    machine: Machine,
    *,
    batch: Number,
    context: Number,
    weights: str,
    kv: str,
    chunk_tokens: int = CHUNK_TOKENS,
    plan: ParallelPlan = ONE_CHIP,
) -> Footprint:
    """Memory of serving ``batch`` sequences that grow to ``context`` tokens each, on the fullest chip.

    Weights and cache are exact. Activations are those of a prefill of ``min(batch * context,
    chunk_tokens)`` tokens (``activation_bytes``). The batch is that of one replica; each of its stages
    holds the caches of all of it. Ignored: fragmentation, and what an engine reserves beyond need.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> need = footprint(model("llama-3.1-8b"), chip, batch=1, context=8192, weights="bf16", kv="bf16")
    >>> float(need.weights_bytes), float(need.kv_bytes), bool(need.fits)
    (16060522496.0, 1073741824.0, True)
    """
    each = footprints(
        model,
        machine,
        plan,
        batch=batch,
        context=context,
        weights=weights,
        kv=kv,
        chunk_tokens=chunk_tokens,
    )
    return each[0] if len(each) == 1 else fullest(list(each))


def footprints(
    model: ModelSpec,
    machine: Machine,
    plan: ParallelPlan,
    *,
    batch: Number,
    context: Number,
    weights: str,
    kv: str,
    chunk_tokens: int = CHUNK_TOKENS,
) -> tuple[Footprint, ...]:
    """The same for a chip of each stage."""

    def of(stage: Stage) -> Footprint:
        return stage_footprint(
            model,
            machine,
            plan,
            stage,
            batch=batch,
            context=context,
            weights=weights,
            kv=kv,
            chunk_tokens=chunk_tokens,
        )

    return each_stage(stages(model, plan), of)


def stage_footprint(
    model: ModelSpec,
    machine: Machine,
    plan: ParallelPlan,
    stage: Stage,
    *,
    batch: Number,
    context: Number,
    weights: str,
    kv: str,
    chunk_tokens: int = CHUNK_TOKENS,
) -> Footprint:
    """The same for a chip of one stage. Towers are spread over the chips of the first."""
    sequences, length = np.asarray(batch, np.float64), np.asarray(context, np.float64)
    tokens = np.minimum(sequences * length, chunk_tokens)
    table = device_operators(
        model,
        plan,
        stage,
        batch=1,
        new_tokens=tokens,
        context=tokens,
        weights=weights,
        kv=kv,
        logit_rows=sequences,
    )
    stored = np.max(table.total("weight_stored_bytes")) + _tower_bytes(model, weights, plan, stage)
    shard = stage.shard
    cached = (cache_bytes(shard, kv, sequences, length) + index_bytes(shard, sequences, length)) / plan.cp
    parts = (
        np.asarray(stored, np.float64),
        cached + sequences * state_bytes(shard),
        activation_bytes(table),
        np.asarray(machine.overhead_bytes),
    )
    return Footprint(machine.capacity_bytes, *np.broadcast_arrays(*parts))


def _tower_bytes(model: ModelSpec, weights: str, plan: ParallelPlan, stage: Stage) -> float:
    if not stage.first:
        return 0.0
    towers = sum(tower.parameters or 0 for tower in model.towers)
    return float(-(-weight_plan(weights, model).vector.vector_bytes(towers) // plan.tp))


def fullest(each: list[Footprint]) -> Footprint:
    """Of several stages the one that takes most, at every point of the sweep."""
    totals = np.stack([need.total_bytes for need in each])
    worst = totals.argmax(axis=0)[None]

    def part(name: str) -> NDArray[np.float64]:
        values = np.stack([getattr(need, name) for need in each])
        return np.asarray(np.take_along_axis(values, worst, axis=0)[0])

    return Footprint(
        each[0].capacity_bytes,
        part("weights_bytes"),
        part("kv_bytes"),
        part("activation_bytes"),
        part("overhead_bytes"),
    )


def activation_bytes(table: Operators) -> NDArray[np.float64]:
    """Peak bytes of activations in one pass: the residual stream, and the largest operator's in and out.

    With a fused attention no tensor grows with the square of the context. Logits count a second time,
    in fp32, in which tokens are chosen from them. Ignored: what a framework's allocator keeps for later.
    """
    shape = (-1,) + (1,) * (table.flops.ndim - 1)
    each = table.activation_bytes / table.repeats.reshape(shape)
    largest = each.max(axis=0)
    if "sample" in table.names:
        row = table.index("sample")
        widened = 4 / STORAGE_FORMATS[table.formats[row]].vector_bytes(1)
        largest = np.maximum(largest, each[row] * (1 + widened))
    return np.asarray(_residual(table, each) + largest)


def _residual(table: Operators, each: NDArray[np.float64]) -> NDArray[np.float64]:
    """One vector of the hidden size a token: what a norm or a residual passes on."""
    if "embedding" in table.names:
        return np.asarray(each[table.index("embedding")])
    streams = [row for row, name in enumerate(table.names) if name.endswith("_residual")]
    return np.asarray(each[streams[0]] / 3)  # two read, one written
