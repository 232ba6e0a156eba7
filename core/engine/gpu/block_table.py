"""Where queries look, as one tensor: what a kernel for a whole batch is given.

A row for each query: how many tokens it sees, then the first slots of the pages in which they lie (vLLM's
block table and context lengths). All of it may change from step to step while its shape stays, so a
captured graph can be replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from core.engine.pages import PageTable

#: A sequence with more new tokens than this is attended to alone.
FEW_ROWS: Final = 16
#: Where all slots follow one another, any page size describes them; this one does not depend on the request.
_PAGE_TOKENS: Final = 16
#: Page sizes that stay as they are; a kernel is compiled for each.
_SIZES: Final = frozenset(2**power for power in range(9))


@dataclass(frozen=True, slots=True)
class Seen:
    """What the new tokens of one sequence see: tokens up to ``context``, the last of them included."""

    table: PageTable
    context: int
    new_tokens: int


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Where R queries look.

    Attributes:
        cells: [R, 1 + P] int64: the tokens that query r sees, then the first slot of each page.
        page_tokens: tokens in a page.
    """

    cells: Tensor
    page_tokens: int

    @classmethod
    def build(cls, seen: Sequence[Seen], device: torch.device) -> BlockTable:
        """The rows of some sequences, in order; P is a power of two, so that few shapes occur."""
        page_tokens = _page_tokens([one.table for one in seen])
        rows: list[list[int]] = []
        for one in seen:
            starts = _starts(one.table, page_tokens, one.context)
            rows += ([length, *starts] for length in range(one.context - one.new_tokens + 1, one.context + 1))
        width = 1 + power_of_two(max(map(len, rows)) - 1)
        padded = [row + [0] * (width - len(row)) for row in rows]
        return cls(torch.tensor(padded).to(device), page_tokens)

    @property
    def num_rows(self) -> int:
        """R."""
        return self.cells.shape[0]

    @property
    def num_pages(self) -> int:
        """P."""
        return self.cells.shape[1] - 1

    def slots(self, window: int | None) -> tuple[Tensor, Tensor]:
        """Slots of the tokens, and which of them each query sees, [R, P * page_tokens] both.

        In place of a token that is not seen stands the query's own, so that nothing else is ever read.
        """
        lengths, starts = self.cells[:, :1], self.cells[:, 1:]
        tokens = torch.arange(self.num_pages * self.page_tokens, device=self.cells.device)
        slots = starts.repeat_interleave(self.page_tokens, 1, output_size=tokens.shape[0])
        slots = slots + tokens % self.page_tokens
        seen = tokens < lengths
        if window is not None:
            seen &= tokens >= lengths - window
        return torch.where(seen, slots, slots.gather(1, lengths - 1)), seen


def power_of_two(count: int) -> int:
    """The least power of two that is not smaller.

    >>> power_of_two(5), power_of_two(8)
    (8, 8)
    """
    return 1 << max(count - 1, 0).bit_length()


def _page_tokens(tables: list[PageTable]) -> int:
    """The page size in which a batch is described; its sequences have one in common."""
    size = tables[0].page_tokens
    if size in _SIZES or any(table.first_slot() is None for table in tables):
        return size
    return _PAGE_TOKENS


def _starts(table: PageTable, page_tokens: int, tokens: int) -> list[int]:
    """The first slot of each page that holds one of the first ``tokens`` tokens."""
    first = table.first_slot()
    if first is not None:
        return list(range(first, first + tokens, page_tokens))
    return [page * page_tokens for page in table.pages[: -(-tokens // page_tokens)]]
