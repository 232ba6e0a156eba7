"""How the list of operators is run: the third seam.

The eager runner calls them one after the other. A compiled runner and one that replays a captured
graph have the same interface.
"""

from __future__ import annotations

from typing import Protocol

import torch

from core.engine.batch import Batch
from core.engine.kv_cache import KVPool
from core.engine.transformer import Operator, Pass, Transformer


class StepRunner(Protocol):
    """Runs one forward pass."""

    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """Run all operators; the result holds the logits, [B, V]."""


class EagerRunner:
    """One operator after the other."""

    def __init__(self, model: Transformer) -> None:
        self.operators: list[Operator] = model.operators()

    @torch.inference_mode()
    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """See ``StepRunner``."""
        values = Pass(batch, pool)
        for _, operator in self.operators:
            operator(values)
        return values


def make_runner(model: Transformer, device: torch.device) -> StepRunner:
    """Choose how steps are run on this device; eagerly on both so far."""
    del device
    return EagerRunner(model)
