"""What takes seconds before the first token, told to whoever listens: a logger's messages, and no output."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: One message as something long begins, and an empty one as it ends.
LOG: Final = logging.getLogger(__name__)


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Say that something begins, and that it is over."""
    LOG.info(what)
    try:
        yield
    finally:
        LOG.info("")
