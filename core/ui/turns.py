"""Pages take turns: while one visitor's page is made, another's waits.

All visitors share one interpreter, which runs one thread at a time. Pages that are made at once slow one
another down and all end late; one after another, each ends as early as it can.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Final

_TURN: Final = threading.Lock()


def in_turn(draw: Callable[[], None]) -> Callable[[], None]:
    """``draw``, waiting for the page that is being made. What draws must not call another of these."""

    @wraps(draw)
    def waiting() -> None:
        with _TURN:
            draw()

    return waiting
