"""How many tokens a prompt has: asked of the worker, remembered by a digest of the prompt.

The prompt itself is not kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from core.lab.request import RunRequest

_REMEMBERED: Final = 256
_WAIT_S: Final = 0.5


class TokenCounts:
    """Counts that are known, and questions whose answer is awaited."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._known: OrderedDict[str, int] = OrderedDict()
        self._asked: set[str] = set()

    def count(self, request: RunRequest, ask: Callable[[dict[str, Any]], bool]) -> int | None:
        """Look the count up, or ask and wait a moment; None where no answer came."""
        key = _digest(request)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            self._asked.add(key)
        if not ask({"type": "count", "id": key, "request": request.to_json()}):
            return None
        with self._lock:
            self._lock.wait_for(lambda: key in self._known or key not in self._asked, _WAIT_S)
            self._asked.discard(key)
            return self._known.get(key)

    def answer(self, key: str, tokens: int | None) -> None:
        """Take one answer in; an answer that nobody waits for any more is kept as well."""
        with self._lock:
            self._asked.discard(key)
            if tokens is not None and tokens >= 0:
                self._known[key] = tokens
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
            self._lock.notify_all()


def _digest(request: RunRequest) -> str:
    # The tokenizer belongs to the model; nothing else of the request changes the count.
    text = "\0".join((request.model, str(request.raw), request.prompt))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
