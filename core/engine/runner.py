"""How the list of operators is run: the third seam.

The eager runner calls them one after the other. A compiled runner and one that replays a captured
graph have the same interface.
"""

from __future__ import annotations

from typing import Protocol

import torch

from core.engine.batch import Batch
from core.engine.kv_cache import KVPool
from core.engine.native.step import NativeStep, native_step
from core.engine.transformer import Operator, Pass, Transformer


class StepRunner(Protocol):
    """Runs one forward pass."""

    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """Run all operators; the result holds the logits, [B, V]."""


def run_each(operators: list[Operator], batch: Batch, pool: KVPool) -> Pass:
    """One operator after the other."""
    values = Pass(batch, pool)
    for _, operator in operators:
        operator(values)
    return values


class EagerRunner:
    """One operator after the other."""

    def __init__(self, model: Transformer) -> None:
        self.operators: list[Operator] = model.operators()

    @torch.inference_mode()
    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """See ``StepRunner``."""
        return run_each(self.operators, batch, pool)


class NativeRunner:
    """Steps of few rows in one call of C++, steps of many rows one operator after the other.

    Attributes:
        step: what runs the few.
    """

    def __init__(self, model: Transformer, step: NativeStep) -> None:
        self.step, self._eager = step, EagerRunner(model)

    def run(self, batch: Batch, pool: KVPool) -> Pass:
        """See ``StepRunner``."""
        return (self.step if self.step.takes(batch) else self._eager).run(batch, pool)


def native_part(runner: StepRunner, values: Pass) -> NativeStep | None:
    """What would run these values in one call of C++; None where operators are called one by one."""
    step = runner.step if isinstance(runner, NativeRunner) else None
    return step if step is not None and step.takes(values.batch) else None


def make_runner(model: Transformer, device: torch.device) -> StepRunner:
    """Choose how steps are run on this device."""
    step = native_step(model) if device.type == "cpu" else None
    return EagerRunner(model) if step is None else NativeRunner(model, step)
