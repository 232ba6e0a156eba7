"""Says on standard error what a command waits for, when that takes longer than a moment."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Final

#: Seconds for which nobody wonders.
_MOMENT_S: Final = 1.0


class _Patience(logging.Handler):
    def __init__(self, moment_s: float) -> None:
        super().__init__(logging.INFO)
        self._moment_s = moment_s
        self._timer: Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Begin to wait for what the record says; an empty one ends the wait."""
        self.close()
        if record.getMessage():
            self._timer = Timer(self._moment_s, _say, (record.getMessage(),))
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Wait for nothing."""
        if self._timer is not None:
            self._timer.cancel()
        super().close()


@contextmanager
def patience(log: logging.Logger, moment_s: float = _MOMENT_S) -> Iterator[None]:
    """Within it, whatever ``log`` begins and does not end within a moment is said on standard error."""
    handler, level = _Patience(moment_s), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        handler.close()


def _say(what: str) -> None:
    with suppress(OSError, ValueError):  # standard error is closed
        sys.stderr.write(f"generate: {what} ...\n")
        sys.stderr.flush()
