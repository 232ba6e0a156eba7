"""Pages of the cache: who holds which, which may be shared, which are free. No tensors are here.

A sequence's tokens lie in pages of ``page_tokens`` slots that need not follow one another: token i is in
slot ``pages[i // page_tokens] * page_tokens + i % page_tokens``. A contiguous cache is the case of one page
for a whole sequence. The idea is that of PagedAttention (https://arxiv.org/abs/2309.06180).
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from dataclasses import dataclass, field

from core.errors import RequestError

#: The chain of hashes begins with this.
_ROOT = b""


@dataclass(slots=True)
class PageTable:
    """Where the tokens of one sequence lie (vLLM's block table).

    Attributes:
        page_tokens: tokens in a page. pages: the pages, in the order of the tokens.
        digests: of the full pages whose content is known, each standing for everything up to its end.
    """

    page_tokens: int
    pages: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)

    def slots(self, start: int, end: int) -> list[int]:
        """The slots of tokens ``start`` to ``end``.

        >>> PageTable(2, [7, 3]).slots(1, 4)
        [15, 6, 7]
        """
        size = self.page_tokens
        return [self.pages[token // size] * size + token % size for token in range(start, end)]

    def first_slot(self) -> int | None:
        """The slot of token 0 where all pages follow one another, so that a slice reaches them all."""
        first, count = self.pages[0], len(self.pages)
        if count > 1 and self.pages != list(range(first, first + count)):
            return None
        return first * self.page_tokens


#: A page to copy and where to.
Copy = tuple[int, int]


class PageAllocator:
    """Counts how many tables hold each page, and knows the content of full ones.

    A page that nobody holds any more keeps its content until the room is needed, so that a later
    request which begins alike finds it. Blank pages go first, then the longest unused.

    Attributes:
        num_pages, page_tokens: how many pages, and tokens in each.
    """

    def __init__(self, num_pages: int, page_tokens: int) -> None:
        if page_tokens < 1 or num_pages < 1:
            raise RequestError(
                "A cache needs one page or more of one token or more; got "
                f"{num_pages:,} pages of {page_tokens:,}. Choose a page size from 1 on, 16 is usual."
            )
        self.num_pages, self.page_tokens = num_pages, page_tokens
        self._holders = [0] * num_pages
        self._blank = list(range(num_pages))  # a heap: low pages first, so that new ones lie in a row
        self._kept: dict[int, None] = {}  # free, but with content; the longest unused first
        self._content: dict[int, tuple[bytes, tuple[int, ...]]] = {}  # page -> digest, its token ids
        self._by_digest: dict[bytes, int] = {}

    @property
    def num_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._blank) + len(self._kept)

    @property
    def num_used(self) -> int:
        """Pages that somebody holds, each once."""
        return self.num_pages - self.num_free

    def pages_for(self, tokens: int) -> int:
        """Pages that so many tokens of one sequence need."""
        return -(-tokens // self.page_tokens)

    def match(self, table: PageTable, token_ids: list[int]) -> int:
        """Let an empty table hold the pages that already have the beginning of ``token_ids``.

        Only full pages are shared, and the last token is left out, since its logits are wanted. Returns
        the number of tokens found.
        """
        size = self.page_tokens
        while (end := (len(table.pages) + 1) * size) < len(token_ids):
            block = tuple(token_ids[end - size : end])
            digest = chained(table.digests[-1] if table.digests else _ROOT, block)
            page = self._by_digest.get(digest)
            if page is None or self._content[page][1] != block:
                break
            self._hold(page)
            table.pages.append(page)
            table.digests.append(digest)
        return len(table.pages) * size

    def extend(self, table: PageTable, start: int, end: int) -> list[Copy] | None:
        """Make tokens ``start`` to ``end`` of a table its own to write.

        Pages are added up to ``end``; one that others hold too is replaced by a copy first (copy-on-write).
        Returns the copies to make before anything is written, or None where too few pages are free: then
        nothing has changed.
        """
        first = start // self.page_tokens
        written = range(first, min(len(table.pages), self.pages_for(end)))
        shared = [index for index in written if self._holders[table.pages[index]] > 1]
        missing = max(self.pages_for(end) - len(table.pages), 0)
        if missing + len(shared) > self.num_free:
            return None
        del table.digests[first:]
        for index in written:
            self._forget(table.pages[index])
        copies = []
        for index in shared:
            page = self._take()
            copies.append((table.pages[index], page))
            self._drop(table.pages[index])
            table.pages[index] = page
        table.pages += [self._take() for _ in range(missing)]
        return copies

    def publish(self, table: PageTable, token_ids: list[int], num_cached: int) -> None:
        """Make known what the full pages of a table hold; where two pages hold the same, one is known."""
        size = self.page_tokens
        for index in range(len(table.digests), num_cached // size):
            block = tuple(token_ids[index * size : (index + 1) * size])
            digest = chained(table.digests[-1] if table.digests else _ROOT, block)
            table.digests.append(digest)
            page = table.pages[index]
            if digest not in self._by_digest and page not in self._content:
                self._by_digest[digest] = page
                self._content[page] = digest, block

    def fork(self, table: PageTable) -> PageTable:
        """A second table over the same pages."""
        for page in table.pages:
            self._hold(page)
        return PageTable(table.page_tokens, list(table.pages), list(table.digests))

    def truncate(self, table: PageTable, tokens: int) -> None:
        """Give back the pages behind the first ``tokens`` tokens."""
        keep = self.pages_for(tokens)
        # Backwards: the end of a text is worth less than its beginning, so it is overwritten first.
        for page in reversed(table.pages[keep:]):
            self._drop(page)
        del table.pages[keep:]
        del table.digests[tokens // self.page_tokens :]

    def _hold(self, page: int) -> None:
        self._kept.pop(page, None)
        self._holders[page] += 1

    def _take(self) -> int:
        """A page nobody holds, blank or made so."""
        page = heapq.heappop(self._blank) if self._blank else next(iter(self._kept))
        self._kept.pop(page, None)
        self._forget(page)
        self._holders[page] = 1
        return page

    def _drop(self, page: int) -> None:
        self._holders[page] -= 1
        if self._holders[page]:
            return
        if page in self._content:
            self._kept[page] = None
        else:
            heapq.heappush(self._blank, page)

    def _forget(self, page: int) -> None:
        """A page that one table is about to write has no known content any more."""
        if self._holders[page] <= 1 and page in self._content:
            digest, _ = self._content.pop(page)
            del self._by_digest[digest]


def chained(before: bytes, block: tuple[int, ...]) -> bytes:
    """The digest of a page's token ids and of everything before them."""
    return hashlib.blake2b(before + array("q", block).tobytes(), digest_size=16).digest()
