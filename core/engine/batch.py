"""What one step works on: some new tokens of some sequences, laid end to end.

A step knows no phases. A prefill is a sequence with many new tokens, a decode step one with a
single new token, and a piece of a prompt lies between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(slots=True)
class Sequence:
    """One request on its way.

    Attributes:
        token_ids: prompt and answer so far. first_slot: where its region of the cache begins.
        num_cached: tokens whose keys and values the cache holds; the rest has yet to be computed.
    """

    token_ids: list[int]
    first_slot: int = 0
    num_cached: int = 0

    @property
    def num_pending(self) -> int:
        """Tokens that have yet to go through the model."""
        return len(self.token_ids) - self.num_cached


@dataclass(frozen=True, slots=True)
class Span:
    """Where one sequence lies in a batch and in the cache.

    Attributes:
        query_start: its first row in the batch. new_tokens: its rows, T.
        context: tokens attention can look at, the new ones included, S.
        first_slot: the slot of its token 0; a contiguous cache holds the others after it.
    """

    query_start: int
    new_tokens: int
    context: int
    first_slot: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The tensors of one step; T tokens over B sequences.

    Attributes:
        token_ids, positions: [T]. slot_mapping: [T], where each token's key and value go.
        logit_rows: [B], the last row of each sequence. spans: one a sequence.
    """

    token_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    logit_rows: Tensor
    spans: tuple[Span, ...] = field(default_factory=tuple)

    @classmethod
    def build(cls, plan: list[tuple[Sequence, int]], device: torch.device) -> Batch:
        """Lay out ``(sequence, how many of its pending tokens)`` for one step."""
        tokens: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        rows: list[int] = []
        spans: list[Span] = []
        for sequence, count in plan:
            start, end = sequence.num_cached, sequence.num_cached + count
            spans.append(Span(len(tokens), count, end, sequence.first_slot))
            tokens += sequence.token_ids[start:end]
            positions += range(start, end)
            slots += range(sequence.first_slot + start, sequence.first_slot + end)
            rows.append(len(tokens) - 1)
        # One upload for all four: on a GPU each would cost a launch of its own.
        packed = torch.tensor([*tokens, *positions, *slots, *rows]).to(device)
        count = len(tokens)
        return cls(
            token_ids=packed[:count],
            positions=packed[count : 2 * count],
            slot_mapping=packed[2 * count : 3 * count],
            logit_rows=packed[3 * count :],
            spans=tuple(spans),
        )

    @property
    def new_tokens(self) -> int:
        """T: rows that go through the model."""
        return self.token_ids.shape[0]

    @property
    def context_tokens(self) -> int:
        """S, summed over the sequences."""
        return sum(span.context for span in self.spans)
