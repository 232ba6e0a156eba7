"""What one step works on: some new tokens of some sequences, laid end to end.

A step knows no phases. A prefill is a sequence with many new tokens, a decode step one with a
single new token, and a piece of a prompt lies between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from core.engine.gpu.block_table import FEW_ROWS, BlockTable, Seen
from core.engine.pages import PageTable

#: A page that no sequence fills, so that slot and position are the same.
_ENDLESS: Final = 2**40


@dataclass(slots=True)
class Sequence:
    """One request on its way.

    Attributes:
        token_ids: prompt and answer so far, and behind them tokens that are only guessed.
        num_cached: tokens whose keys and values the cache holds; the rest has yet to be computed.
        table: where they lie in the cache; one page without end, from slot 0 on, unless given.
        num_drafted: how many of the last tokens are guesses, to be verified by the next step.
    """

    token_ids: list[int]
    num_cached: int = 0
    table: PageTable = field(default_factory=lambda: PageTable(_ENDLESS, [0]))
    num_drafted: int = 0

    @property
    def num_pending(self) -> int:
        """Tokens that have yet to go through the model."""
        return len(self.token_ids) - self.num_cached

    def drop_guesses(self) -> None:
        """Take back all guesses."""
        del self.token_ids[len(self.token_ids) - self.num_drafted :]
        self.num_drafted = 0

    def settle(self, count: int, chosen: list[int]) -> list[int]:
        """Take in what a step chose for ``count`` tokens; the tokens that follow, to be appended.

        The first of ``chosen`` follows the last sure token, each other one a guess. A guess is right when
        the token chosen in its place is the same; behind the right ones stands one token more, which the
        model chose itself. A piece of a prompt chooses a token that nobody wants.
        """
        self.num_cached += count
        if self.num_pending:
            return []
        guesses = self.token_ids[len(self.token_ids) - self.num_drafted :]
        right = next((i for i, guess in enumerate(guesses) if guess != chosen[i]), len(guesses))
        self.num_cached -= len(guesses) - right
        self.drop_guesses()
        return chosen[: right + 1]


@dataclass(frozen=True, slots=True)
class Span:
    """Where one sequence lies in a batch and in the cache.

    Attributes:
        query_start: its first row in the batch. new_tokens: its rows, T.
        context: tokens attention can look at, the new ones included, S.
        num_logits: rows at its end whose logits are wanted; a guessed token needs one each.
        table: the pages of its tokens. in_a_row: its slots follow one another.
        first_slot: the slot of its token 0 where the others follow it.
    """

    query_start: int
    new_tokens: int
    context: int
    num_logits: int
    table: PageTable
    in_a_row: bool
    first_slot: int
    device: torch.device
    _made: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def slots(self) -> Tensor | None:
        """The slot of each token, [S], where they do not follow one another; made when first asked for."""
        if not self.in_a_row and not self._made:
            self._made.append(_slots(self.table, self.context, self.device))
        return self._made[0] if self._made else None

    def where(self, first: int) -> slice | Tensor:
        """The slots from token ``first`` to the last."""
        slots = self.slots
        if slots is None:
            return slice(self.first_slot + first, self.first_slot + self.context)
        return slots[first:]


@dataclass(frozen=True, slots=True)
class Batch:
    """The tensors of one step; T tokens over B sequences.

    Attributes:
        token_ids, positions: [T]. slot_mapping: [T], where each token's key and value go.
        logit_rows: [B] without guesses, the last row of each sequence. spans: one a sequence; none where
            a graph is captured, in which whatever differs from step to step is a tensor.
    """

    token_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    logit_rows: Tensor
    spans: tuple[Span, ...] = field(default_factory=tuple)
    _blocks: list[BlockTable] = field(default_factory=list, repr=False)

    @classmethod
    def fixed(cls, token_ids: Tensor, positions: Tensor, slot_mapping: Tensor, blocks: BlockTable) -> Batch:
        """A batch that is all tensors: a token for each row, and logits of every row."""
        rows = torch.arange(token_ids.shape[0], device=token_ids.device)
        return cls(token_ids, positions, slot_mapping, rows, _blocks=[blocks])

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
            first = sequence.table.first_slot()
            logits = 1 + (sequence.num_drafted if end == len(sequence.token_ids) else 0)
            row = first is not None
            spans.append(Span(len(tokens), count, end, logits, sequence.table, row, first or 0, device))
            tokens += sequence.token_ids[start:end]
            positions += range(start, end)
            slots += sequence.table.slots(start, end) if first is None else range(first + start, first + end)
            rows += range(len(tokens) - logits, len(tokens))
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
    def short_spans(self) -> list[Span]:
        """The sequences with few new tokens."""
        return [span for span in self.spans if span.new_tokens <= FEW_ROWS]

    def blocks(self) -> BlockTable:
        """Where the rows of ``short_spans`` look, for one launch; made when first asked for."""
        if not self._blocks:
            short = [Seen(span.table, span.context, span.new_tokens) for span in self.short_spans]
            self._blocks.append(BlockTable.build(short, self.token_ids.device))
        return self._blocks[0]

    @property
    def context_tokens(self) -> int:
        """S, summed over the sequences."""
        return sum(span.context for span in self.spans)


def _slots(table: PageTable, end: int, device: torch.device) -> Tensor:
    """The slots of the tokens before ``end`` in scattered pages, [end]."""
    size = table.page_tokens
    starts = torch.tensor(table.pages[: -(-end // size)], device=device).mul_(size).unsqueeze(1)
    return (starts + torch.arange(size, device=device)).view(-1)[:end]
