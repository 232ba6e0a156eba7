"""One step: lay out the batch, run the model, choose tokens, and write down what it did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import torch

from core.analytic.step_record import StepKind, StepRecord
from core.catalog.model import ModelSpec
from core.engine.batch import Batch, Sequence
from core.engine.clock import StepClock
from core.engine.kv_cache import KVPool
from core.engine.runner import StepRunner
from core.engine.sampling import Chooser
from core.engine.transformer import Pass
from core.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class StepBytes:
    """Parameters that a step reads: those read whatever it works on, and one row of the table a token.

    Experts are in neither: a pass counts those that it reads.
    """

    fixed: int
    per_token: int


@dataclass(frozen=True, slots=True)
class StepLabel:
    """What a record says of a step beside its counts and times; see ``StepRecord``."""

    index: int
    kind: StepKind
    pages_used: int = 1
    pages_free: int = 0
    num_waiting: int = 0
    num_preempted: int = 0
    shared_tokens: int = 0


class Stepper:
    """Runs steps over one pool and counts what they move.

    Attributes:
        peak_activation_bytes: the largest set of intermediate tensors that a pass ended with.
    """

    def __init__(self, spec: ModelSpec, runner: StepRunner, weights: StepBytes, device: torch.device) -> None:
        self.spec = spec
        self.device = device
        self.peak_activation_bytes = 0
        self._runner = runner
        self._weights = weights
        self._clock = StepClock(device)

    def step(
        self, plan: list[tuple[Sequence, int]], pool: KVPool, sampler: Chooser, label: StepLabel
    ) -> tuple[list[list[int]], StepRecord]:
        """Run ``(sequence, pending tokens to take)`` through the model.

        Each sequence's cached count moves on; the new tokens of each are returned and not appended: one,
        more where guesses were right, none for a piece of a prompt.

        Raises:
            CheckpointError: the logits are not finite.
        """
        self._clock.start()
        batch = Batch.build(plan, self.device)
        values = self._runner.run(batch, pool)
        chosen = sampler.choose(values.logits)
        self._clock.launched()
        tokens: list[int] = chosen.tolist()  # the step's only wait for the device
        times_s = self._clock.stop()
        if min(tokens) < 0:
            raise CheckpointError(
                f"The model's logits must be finite; step {label.index} gave others. Its weights are "
                "damaged, or too large for this format: try bf16 or fp32 weights."
            )
        drafted = sum(sequence.num_drafted for sequence, _ in plan)
        ordered = iter(tokens)
        settled = [
            sequence.settle(count, list(islice(ordered, span.num_logits)))
            for (sequence, count), span in zip(plan, batch.spans, strict=True)
        ]
        self.peak_activation_bytes = max(self.peak_activation_bytes, values.num_bytes)
        record = self._record(label, values, times_s)
        if not drafted:
            return settled, record
        accepted = sum(len(new) - 1 for new in settled if new)
        return settled, replace(record, drafted_tokens=drafted, accepted_tokens=accepted)

    def _record(self, label: StepLabel, values: Pass, times_s: tuple[float, float]) -> StepRecord:
        batch, fixed = values.batch, self._weights.fixed + values.expert_bytes
        read_bytes, write_bytes = values.pool.traffic_bytes(_slots_read(self.spec, batch), batch.new_tokens)
        return StepRecord(
            index=label.index,
            kind=label.kind,
            num_sequences=len(batch.spans),
            new_tokens=batch.new_tokens,
            context_tokens=batch.context_tokens,
            weight_bytes=fixed + self._weights.per_token * batch.new_tokens,
            kv_read_bytes=read_bytes,
            kv_write_bytes=write_bytes,
            pages_used=label.pages_used,
            pages_free=label.pages_free,
            device_s=times_s[0],
            host_s=times_s[1],
            num_waiting=label.num_waiting,
            num_preempted=label.num_preempted,
            shared_tokens=label.shared_tokens,
            experts_read=values.experts_read,
        )


def _slots_read(spec: ModelSpec, batch: Batch) -> list[int]:
    """Slots that attention reads in each layer, each once however many queries share it."""
    windows = {layer.attention.window for layer in spec.layers}
    by_window = {
        window: sum(
            span.context if window is None else min(span.context, span.new_tokens + window - 1)
            for span in batch.spans
        )
        for window in windows
    }
    return [by_window[layer.attention.window] for layer in spec.layers]
