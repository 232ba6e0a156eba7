"""The memory of the cache over the life of an engine: one pool that grows, and the pages laid over it."""

from __future__ import annotations

from typing import Final

import torch

from core.analytic.kv_cache import bytes_per_token
from core.catalog.model import ModelSpec
from core.engine.kv_cache import KVPool
from core.engine.pages import PageAllocator
from core.engine.room import require_room

#: The cache grows by this many slots, so that a slightly longer request finds room.
SLOT_STEP: Final = 256


class CacheMemory:
    """Keeps the last pool as long as it is large enough, and the last pages as long as they fit.

    Pages that are laid out the same way stay, so that a request finds what an earlier one left there.

    Args:
        spec: the model. kv: the cache's format. device: where it is.
        scratch: slots behind those that are asked for, which belong to whoever runs the steps.
    """

    def __init__(self, spec: ModelSpec, kv: str, device: torch.device, scratch: int = 0) -> None:
        self._spec, self._kv, self._device, self._scratch = spec, kv, device, scratch
        self._pool: KVPool | None = None
        self._pages: PageAllocator | None = None

    def slots_for(self, slots: int) -> int:
        """How many slots there will be to fill when so many are asked for."""
        present = 0 if self._pool is None else self._pool.num_slots - self._scratch
        return max(present, -(-slots // SLOT_STEP) * SLOT_STEP)

    @property
    def num_bytes(self) -> int:
        """Bytes of the pool."""
        return 0 if self._pool is None else self._pool.num_bytes

    def reserve(self, slots: int) -> KVPool:
        """A pool with room for this many tokens, to write anywhere.

        Raises:
            RequestError: it does not fit into the free memory.
        """
        self._pages = None
        if self._pool is None or self._pool.num_slots - self._scratch < slots:
            rounded = self.slots_for(slots) + self._scratch
            self._pool = None  # gone before its successor comes, or both would be in memory
            require_room(rounded * bytes_per_token(self._spec, self._kv), "The cache", self._device)
            self._pool = KVPool(self._spec, rounded, self._kv, self._device)
        return self._pool

    def paged(self, num_pages: int, page_tokens: int) -> tuple[KVPool, PageAllocator]:
        """A pool with so many pages, and who holds them.

        Raises:
            RequestError: it does not fit into the free memory.
        """
        known, before = self._pages, self._pool
        pool = self.reserve(num_pages * page_tokens)
        if (
            known is None
            or pool is not before
            or (known.num_pages, known.page_tokens) != (num_pages, page_tokens)
        ):
            known = PageAllocator(num_pages, page_tokens)
        self._pages = known
        return pool, known
