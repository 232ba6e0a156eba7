"""Pages of a cache without any tokens: who holds which page, as the engine's allocator hands them out.

What a page holds is not known here, only whether two pages would hold the same: the full pages of a
beginning that all requests share do, and a request's own pages do when it is computed again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

#: What a full page holds: the request it belongs to, ``SHARED`` for the common beginning, and its place.
Content = tuple[int, int]
SHARED: Final = -1


@dataclass(slots=True)
class Held:
    """The pages of one request, in the order of its tokens; of the first ``known`` the content is known."""

    pages: list[int] = field(default_factory=list)
    known: int = 0


class Pages:
    """Hands out pages: blank ones from the lowest on, then the one that was given back longest ago.

    Args:
        num_pages: how many. page_tokens: tokens in each.
    """

    def __init__(self, num_pages: int, page_tokens: int) -> None:
        self.num_pages, self.page_tokens = num_pages, page_tokens
        self._holders = [0] * num_pages
        self._blank = list(range(num_pages))
        self._kept: dict[int, None] = {}
        self._content: dict[int, Content] = {}
        self._page_of: dict[Content, int] = {}

    @property
    def num_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._blank) + len(self._kept)

    def match(self, held: Held, contents: Iterable[Content]) -> int:
        """Let a request without pages hold those that have its beginning; the number of its tokens there."""
        for content in contents:
            page = self._page_of.get(content)
            if page is None:
                break
            self._kept.pop(page, None)
            self._holders[page] += 1
            held.pages.append(page)
        held.known = len(held.pages)
        return held.known * self.page_tokens

    def extend(self, held: Held, tokens: int) -> bool:
        """Give a request the pages for so many tokens in all; False where too few are free."""
        missing = -(-tokens // self.page_tokens) - len(held.pages)
        if missing > self.num_free:
            return False
        held.pages += [self._take() for _ in range(missing)]
        return True

    def publish(self, held: Held, contents: Sequence[Content]) -> None:
        """Make known what the full pages of a request hold; of two that hold the same, one is known."""
        for place in range(held.known, len(contents)):
            page, content = held.pages[place], contents[place]
            if content not in self._page_of:
                self._page_of[content] = page
                self._content[page] = content
        held.known = len(contents)

    def release(self, held: Held) -> None:
        """Take all pages of a request back, the last first."""
        for page in reversed(held.pages):
            self._drop(page)
        held.pages.clear()
        held.known = 0

    def _take(self) -> int:
        page = heapq.heappop(self._blank) if self._blank else next(iter(self._kept))
        self._kept.pop(page, None)
        if page in self._content:
            del self._page_of[self._content.pop(page)]
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
