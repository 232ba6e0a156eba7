"""What a served model keeps in memory, against what the chip has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.kv_cache import cache_bytes
from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.analytic.params import stored_bytes
from core.analytic.table import Operators
from core.catalog.model import ModelSpec
from core.units import Number

#: Prompt tokens that a serving engine passes through the model at once; longer prompts go in chunks.
#: https://docs.vllm.ai/en/latest/configuration/optimization/ (max_num_batched_tokens), 2026-11-29
CHUNK_TOKENS: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """Bytes by what they are for; arrays of the sweep's shape.

    Attributes:
        capacity_bytes: what the chip offers to software; None where that is unknown.
        weights_bytes: all parameters, scales included. kv_bytes: the cache at its fullest.
        activation_bytes: the largest tensors alive at once. overhead_bytes: driver and framework.
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
) -> Footprint:
    """Memory of serving ``batch`` sequences that grow to ``context`` tokens each.

    Weights and cache are exact. Activations are those of a prefill of ``min(batch * context,
    chunk_tokens)`` tokens (``activation_bytes``). Ignored: fragmentation, and what an engine
    reserves beyond need.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> need = footprint(model("llama-3.1-8b"), chip, batch=1, context=8192, weights="bf16", kv="bf16")
    >>> float(need.weights_bytes), float(need.kv_bytes), bool(need.fits)
    (16060522496.0, 1073741824.0, True)
    """
    sequences, length = np.asarray(batch, np.float64), np.asarray(context, np.float64)
    tokens = np.minimum(sequences * length, chunk_tokens)
    table = operators(
        model, batch=1, new_tokens=tokens, context=tokens, weights=weights, kv=kv, logit_rows=sequences
    )
    parts = (
        np.asarray(float(stored_bytes(model, weights))),
        cache_bytes(model, kv, sequences, length),
        activation_bytes(table),
        np.asarray(machine.overhead_bytes),
    )
    return Footprint(machine.capacity_bytes, *np.broadcast_arrays(*parts))


def activation_bytes(table: Operators) -> NDArray[np.float64]:
    """Peak bytes of activations in one pass: the residual stream, and the largest operator's in and out.

    With a fused attention no tensor grows with the square of the context. Ignored: what a framework's
    allocator keeps for later, and logits in a wider format than the activations.
    """
    shape = (-1,) + (1,) * (table.flops.ndim - 1)
    each = table.activation_bytes / table.repeats.reshape(shape)
    return np.asarray(each[table.index("embedding")] + each.max(axis=0))
