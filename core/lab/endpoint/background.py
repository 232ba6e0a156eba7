"""One measurement in a thread of its own, so that a page can watch it, and stop it.

One at a time for all of this computer: two would measure each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from typing import Final

from core.errors import JobError, UserError
from core.lab.endpoint.load import measure
from core.lab.endpoint.prediction import EndpointPrediction
from core.lab.endpoint.record import EndpointRecord
from core.lab.endpoint.request import EndpointRequest

_BUSY: Final = threading.Lock()
_FAULT: Final = (
    "A measurement must end with a result or a reason; this one ended with a fault of the app. The log of "
    "the server says more."
)
_STOPPED: Final = "You stopped the run before the first answer, so there is nothing to show. Start it again."


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a measurement stands: what is under way, and in the end a record or a sentence."""

    phase: str
    fraction: float | None
    is_over: bool
    record: EndpointRecord | None = None
    trouble: str = ""


class Run:
    """A measurement that was started; ``start`` makes one. The key is not kept in it."""

    def __init__(self, request: EndpointRequest, prediction: EndpointPrediction | None) -> None:
        self.request, self.prediction = request, prediction
        self._lock = threading.Lock()
        self._now = Snapshot("starting", None, is_over=False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[EndpointRecord] | None = None
        self._is_cancelled = False

    def snapshot(self) -> Snapshot:
        """Where it stands now."""
        with self._lock:
            return self._now

    def cancel(self) -> None:
        """Stop it; what was answered by then is kept."""
        with self._lock:
            self._is_cancelled = True
            loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # it has just ended, and its loop is closed
                loop.call_soon_threadsafe(task.cancel)

    def work(self, key: str) -> None:
        """Measure; ``start`` calls this in a thread."""
        over = Snapshot("", None, is_over=True, trouble=_FAULT)
        try:
            over = Snapshot("", 1.0, is_over=True, record=asyncio.run(self._measured(key)))
        except UserError as problem:
            over = Snapshot("", None, is_over=True, trouble=str(problem))
        except asyncio.CancelledError:
            over = Snapshot("", None, is_over=True, trouble=_STOPPED)
        finally:
            with self._lock:
                self._now = over
            _BUSY.release()

    async def _measured(self, key: str) -> EndpointRecord:
        task = asyncio.ensure_future(measure(self.request, key, self.prediction, self._note))
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), task
            is_cancelled = self._is_cancelled
        if is_cancelled:
            task.cancel()
        return await task

    def _note(self, phase: str, fraction: float | None) -> None:
        with self._lock:
            self._now = Snapshot(phase, fraction, is_over=False)


def start(request: EndpointRequest, key: str, prediction: EndpointPrediction | None) -> Run:
    """Begin a measurement.

    Raises:
        RequestError: a limit does not hold.
        JobError: another one is under way.
    """
    request.validate()
    if not _BUSY.acquire(blocking=False):
        raise JobError(
            "One server can be measured at a time on this computer, and one is under way. Wait for it, or "
            "stop it where it was started."
        )
    run = Run(request, prediction)
    threading.Thread(target=run.work, args=(key,), name="endpoint", daemon=True).start()
    return run
