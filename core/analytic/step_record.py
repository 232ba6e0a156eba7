"""What one engine step did: the record that every measured picture is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

#: Prompt tokens that one step of the engine reads at most; a longer prompt is read in pieces.
PREFILL_TOKENS: Final = 2048

StepKind = Literal["prefill", "decode", "mixed"]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One forward pass and its sampling, as the engine counted and timed it.

    Attributes:
        index: 0 for the first step of the run.
        kind: "prefill" when it read prompt tokens, "decode" when it continued answers, "mixed" for both.
        num_sequences: sequences in the step.
        new_tokens: tokens that went through the model, over all sequences.
        context_tokens: tokens that attention could look at, the new ones included, summed over
            the sequences.
        weight_bytes: parameters read, counted on the real tensors.
        kv_read_bytes, kv_write_bytes: traffic of the KV cache, counted on the real tensors.
        pages_used, pages_free: KV pages during the step; a contiguous cache is one page a sequence.
        device_s: time on the device. host_s: wall time of the step, from its first instruction
            until its tokens are on the host.
        num_waiting: requests that had arrived and held no pages. num_preempted: sequences that
            lost their pages to others before it. shared_tokens: prompt tokens that began to share
            pages with an earlier request, so that they were not computed.
        drafted_tokens, accepted_tokens: guesses that it verified, and those that were right.
        experts_read: different experts that it read, summed over the layers; 0 where a model has none.
    """

    index: int
    kind: StepKind
    num_sequences: int
    new_tokens: int
    context_tokens: int
    weight_bytes: int
    kv_read_bytes: int
    kv_write_bytes: int
    pages_used: int
    pages_free: int
    device_s: float
    host_s: float
    num_waiting: int = 0
    num_preempted: int = 0
    shared_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    experts_read: int = 0

    @property
    def overhead_s(self) -> float:
        """Wall time during which the device was not busy with this step."""
        return max(self.host_s - self.device_s, 0.0)
