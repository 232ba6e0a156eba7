"""The page allocator: random traces against its invariants, sharing, and copy-on-write. No torch."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.engine import pages
from core.engine.pages import PageAllocator, PageTable
from core.errors import RequestError

#: Few different tokens, so that texts begin alike.
TOKENS = st.integers(0, 1)


class Holder:
    """A sequence and the content that it believes to have written, slot by slot."""

    def __init__(self, table: PageTable, token_ids: list[int]) -> None:
        self.table, self.token_ids, self.num_cached = table, token_ids, 0


class AllocatorMachine(RuleBasedStateMachine):
    """Admits, extends, forks, truncates and releases at random, over a memory that is really written."""

    @initialize(num_pages=st.integers(1, 8), page_tokens=st.integers(1, 4))
    def start(self, num_pages: int, page_tokens: int) -> None:
        self.allocator = PageAllocator(num_pages, page_tokens)
        self.memory: list[tuple[int, ...] | None] = [None] * (num_pages * page_tokens)
        self.holders: list[Holder] = []

    @rule(token_ids=st.lists(TOKENS, min_size=1, max_size=12))
    def admit(self, token_ids: list[int]) -> None:
        holder = Holder(PageTable(self.allocator.page_tokens), token_ids)
        holder.num_cached = self.allocator.match(holder.table, token_ids)
        assert holder.num_cached < len(token_ids)
        self.holders.append(holder)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), count=st.integers(1, 5))
    def write(self, data: st.DataObject, count: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        start = holder.num_cached
        end = min(start + count, len(holder.token_ids))
        before = list(holder.table.pages), self.allocator.num_free
        copies = self.allocator.extend(holder.table, start, end)
        if copies is None:
            assert (holder.table.pages, self.allocator.num_free) == before
            return
        size = self.allocator.page_tokens
        for source, target in copies:
            self.memory[target * size : (target + 1) * size] = self.memory[
                source * size : (source + 1) * size
            ]
        for token, slot in zip(range(start, end), holder.table.slots(start, end), strict=True):
            self.memory[slot] = tuple(holder.token_ids[: token + 1])
        holder.num_cached = end
        self.allocator.publish(holder.table, holder.token_ids, end)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), token=TOKENS)
    def append(self, data: st.DataObject, token: int) -> None:
        data.draw(st.sampled_from(self.holders)).token_ids.append(token)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        parent = data.draw(st.sampled_from(self.holders))
        child = Holder(self.allocator.fork(parent.table), list(parent.token_ids))
        child.num_cached = parent.num_cached
        self.holders.append(child)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), keep=st.integers(0, 12), token=TOKENS)
    def take_back(self, data: st.DataObject, keep: int, token: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        holder.num_cached = min(keep, holder.num_cached)
        self.allocator.truncate(holder.table, holder.num_cached)
        holder.token_ids[holder.num_cached :] = [token]

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.allocator.truncate(holder.table, 0)
        assert holder.table.pages == []
        self.holders.remove(holder)

    @invariant()
    def every_page_is_free_or_held(self) -> None:
        if not hasattr(self, "allocator"):
            return
        held = Counter(page for holder in self.holders for page in holder.table.pages)
        assert self.allocator.num_used == len(held)
        assert self.allocator.num_free == self.allocator.num_pages - len(held)
        assert all(0 <= page < self.allocator.num_pages for page in held)

    @invariant()
    def everybody_reads_what_they_wrote(self) -> None:
        """The memory of each cached token holds the text up to it, whoever computed it."""
        for holder in getattr(self, "holders", []):
            slots = holder.table.slots(0, holder.num_cached)
            assert len(set(slots)) == len(slots)
            found = [self.memory[slot] for slot in slots]
            assert found == [tuple(holder.token_ids[: end + 1]) for end in range(holder.num_cached)]


AllocatorMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAllocator = AllocatorMachine.TestCase


def written(allocator: PageAllocator, token_ids: list[int]) -> PageTable:
    table = PageTable(allocator.page_tokens)
    found = allocator.match(table, token_ids)
    assert allocator.extend(table, found, len(token_ids)) == []
    allocator.publish(table, token_ids, len(token_ids))
    return table


def test_only_full_pages_before_the_last_token_are_shared() -> None:
    allocator = PageAllocator(8, 2)
    first = written(allocator, [1, 2, 3, 4, 5])
    second = PageTable(2)
    assert allocator.match(second, [1, 2, 3, 4, 5]) == 4
    assert second.pages == first.pages[:2]
    assert allocator.num_used == 3
    assert allocator.match(PageTable(2), [1, 2, 3, 4]) == 2
    assert allocator.match(PageTable(2), [9, 2, 3, 4, 5]) == 0


def test_free_pages_keep_their_content_until_the_room_is_needed() -> None:
    allocator = PageAllocator(4, 2)
    allocator.truncate(written(allocator, [1, 2, 3, 4, 5]), 0)
    assert allocator.num_free == 4
    again = PageTable(2)
    assert allocator.match(again, [1, 2, 3, 4, 5]) == 4
    allocator.truncate(again, 0)
    allocator.truncate(written(allocator, [6] * 6), 0)  # takes the blank page first, then the text's end
    assert allocator.match(PageTable(2), [1, 2, 3, 4, 5]) == 2


def test_two_texts_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "chained", lambda before, block: before + b"x")
    allocator = PageAllocator(8, 2)
    written(allocator, [1, 2, 3])
    assert allocator.match(PageTable(2), [7, 2, 3]) == 0
    assert allocator.match(PageTable(2), [1, 2, 9]) == 2


def test_a_shared_page_is_copied_before_it_is_written() -> None:
    allocator = PageAllocator(3, 4)
    parent = written(allocator, [1, 2])
    child = allocator.fork(parent)
    assert allocator.extend(child, 2, 3) == [(0, 1)]
    assert (parent.pages, child.pages) == ([0], [1])
    assert allocator.extend(parent, 2, 3) == []


def test_where_pages_are_missing_nothing_changes() -> None:
    allocator = PageAllocator(2, 2)
    written(allocator, [1, 2])
    table = PageTable(2)
    assert allocator.extend(table, 0, 4) is None
    assert (table.pages, allocator.num_free) == ([], 1)


@pytest.mark.parametrize(("num_pages", "page_tokens"), [(4, 0), (4, -16), (0, 16)])
def test_sizes_that_cannot_be_are_refused(num_pages: int, page_tokens: int) -> None:
    with pytest.raises(RequestError, match="needs one page or more of one token or more"):
        PageAllocator(num_pages, page_tokens)


def test_pages_in_a_row_are_one_slice() -> None:
    assert PageTable(4, [2, 3, 4]).first_slot() == 8
    assert PageTable(4, [2, 4, 3]).first_slot() is None


def test_a_page_that_is_written_again_is_not_found_by_its_old_content() -> None:
    allocator = PageAllocator(4, 2)
    table = written(allocator, [1, 2, 3, 4, 5])
    allocator.truncate(table, 3)
    assert allocator.match(PageTable(2), [1, 2, 3, 4, 5]) == 4
    table = written(allocator, [1, 2, 6, 7])  # takes the blank page
    allocator.truncate(table, 3)
    assert allocator.extend(table, 3, 4) == []
    assert allocator.match(PageTable(2), [1, 2, 6, 7, 8]) == 2
