"""The worker's loop: one job at a time in the main thread, everything else beside it.

::

    standard input -> reader thread -> jobs    -> main thread  -> standard output
                                    -> cancels (a flag that the job looks at between steps)
                                    -> counts  -> side thread  -> standard output

The loop knows nothing of torch; what a job does comes in as a function.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, NoReturn, Protocol

from core.analytic.step_record import StepRecord
from core.errors import UserError
from core.lab.protocol import MAX_LINE_BYTES, REQUESTS, ProtocolError, decode, encode

#: A worker without a job for so long may use the moment.
IDLE_S = 20.0

#: Reports a phase and how much of it is done, from 0 to 1; None where that is unknown.
Report = Callable[[str, float | None], None]


class StopRequestedError(Exception):
    """The server asked for this job to stop."""


class JobContext:
    """What a running job may do: report, stream steps, and see that it should stop."""

    def __init__(self, id: str, outbox: Outbox, stop: threading.Event) -> None:
        self.id = id
        self._outbox = outbox
        self._stop = stop

    def report(self, phase: str, fraction: float | None = None) -> None:
        """Say what is being done, then stop here if that was asked for.

        Raises:
            StopRequestedError: the job was cancelled.
        """
        self._outbox.send({"type": "progress", "id": self.id, "phase": phase, "fraction": fraction})
        self.check()

    def step(self, text: str, step: StepRecord) -> None:
        """Stream one finished engine step and the text it added."""
        self._outbox.send({"type": "step", "id": self.id, "text": text, "step": asdict(step)})

    def part(self, part: Mapping[str, Any]) -> None:
        """Stream one finished part of the result, in the form that the job's kind gives it."""
        self._outbox.send({"type": "part", "id": self.id, "part": part})

    def should_stop(self) -> bool:
        """Whether the job was cancelled."""
        return self._stop.is_set()

    def check(self) -> None:
        """Leave the job if it was cancelled.

        Raises:
            StopRequestedError: it was.
        """
        if self._stop.is_set():
            raise StopRequestedError


class Work(Protocol):
    """What a worker is started with: how to warm up, what jobs it knows, how to count tokens."""

    def warm_up(self, report: Report) -> dict[str, Any]:
        """Get ready for jobs and describe this worker (``core.lab.status.WorkerInfo``)."""

    def jobs(self) -> Mapping[str, Callable[[JobContext, dict[str, Any]], dict[str, Any]]]:
        """Job kind -> function of the context and the payload that returns the result."""

    def count_tokens(self, request: dict[str, Any]) -> int | None:
        """Tokens of a request's prompt; None where that is not known yet."""

    def idle(self, report: Report) -> dict[str, Any] | None:
        """Use a quiet moment; a new calibration, or None. ``report`` leaves it when a job comes in."""


class Outbox:
    """Standard output, shared by the threads: one whole line at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; the process ends when nobody is left to read it."""
        line = encode(message)
        try:
            with self._lock:
                self._stream.write(line)
                self._stream.flush()
        except BrokenPipeError:
            os._exit(0)


@dataclass(slots=True)
class _Inbox:
    """What the reader thread hands over, and the flags of the jobs that are known."""

    jobs: queue.SimpleQueue[dict[str, Any]]
    counts: queue.SimpleQueue[dict[str, Any]]
    stops: dict[str, threading.Event]


def serve(make_work: Callable[[], Work], source: BinaryIO, sink: BinaryIO) -> NoReturn:
    """Warm up, then run jobs until the server closes ``source``."""
    outbox = Outbox(sink)
    inbox = _Inbox(queue.SimpleQueue(), queue.SimpleQueue(), {})
    threading.Thread(target=_read, args=(source, inbox), name="reader", daemon=True).start()
    work, info = _start(make_work, outbox)
    threading.Thread(target=_count, args=(work, inbox, outbox), name="counter", daemon=True).start()
    outbox.send({"type": "ready", "info": info})
    while True:
        try:
            message = inbox.jobs.get(timeout=IDLE_S)
        except queue.Empty:
            _idle(work, inbox, outbox)
            continue
        _run_job(work, message, inbox.stops[message["id"]], outbox)
        del inbox.stops[message["id"]]


def _idle(work: Work, inbox: _Inbox, outbox: Outbox) -> None:
    def report(phase: str, fraction: float | None) -> None:
        del phase, fraction  # nobody waits for this
        if not inbox.jobs.empty():
            raise StopRequestedError

    try:
        if calibration := work.idle(report):
            outbox.send({"type": "calibrated", "calibration": calibration})
    except StopRequestedError:
        return  # a visitor comes first; the next quiet moment will do
    except Exception as fault:  # noqa: BLE001 - what nobody asked for must not end the worker
        _log(fault)


def _start(make_work: Callable[[], Work], outbox: Outbox) -> tuple[Work, dict[str, Any]]:
    def report(phase: str, fraction: float | None) -> None:
        outbox.send({"type": "warming", "phase": phase, "fraction": fraction})

    report("loading", None)
    try:
        work = make_work()
        return work, work.warm_up(report)
    except ImportError as error:
        outbox.send({"type": "broken", "message": f"the package {error.name} is not installed"})
    except Exception as fault:  # noqa: BLE001 - the server must hear of it, whatever it was
        _log(fault)
        message = str(fault) if isinstance(fault, UserError) else f"a fault: {type(fault).__name__}"
        outbox.send({"type": "broken", "message": message})
    os._exit(1)  # a thread waits on standard input, so an orderly exit would trip over it


def _read(source: BinaryIO, inbox: _Inbox) -> None:
    """Sort incoming lines until the server closes the pipe or dies, then end the process.

    A job may be deep in a long operator at that moment, so nothing is asked of it.
    """
    while line := source.readline(MAX_LINE_BYTES + 1):
        try:
            message = decode(line, REQUESTS)
        except ProtocolError as error:
            print(f"lab worker: {error}; leaving", file=sys.stderr)  # noqa: T201 - the host's log
            os._exit(1)
        if message["type"] == "job":
            inbox.stops[message["id"]] = threading.Event()
            inbox.jobs.put(message)
        elif message["type"] == "count":
            inbox.counts.put(message)
        elif stop := inbox.stops.get(message["id"]):
            stop.set()
    os._exit(0)


def _run_job(work: Work, message: dict[str, Any], stop: threading.Event, outbox: Outbox) -> None:
    job_id = message["id"]
    try:
        job = work.jobs()[message["kind"]]
        result = job(JobContext(job_id, outbox, stop), message["payload"])
        reply = {"type": "done", "id": job_id, "result": result}
        encode(reply)
    except StopRequestedError:
        reply = {"type": "cancelled", "id": job_id}
    except UserError as mistake:
        reply = {"type": "failed", "id": job_id, "message": str(mistake)}
    except MemoryError:
        reply = {"type": "failed", "id": job_id, "message": OUT_OF_MEMORY}
    except Exception as fault:  # noqa: BLE001 - one job's fault must not end the worker
        _log(fault)
        reply = {"type": "failed", "id": job_id, "message": _fault_sentence(fault)}
    outbox.send(reply)


OUT_OF_MEMORY = (
    "The job must fit in this machine's memory, and it ran out. Choose a smaller model, a smaller "
    "format or a shorter run."
)


def _fault_sentence(fault: Exception) -> str:
    return (
        f"The job stopped at a fault in the engine ({type(fault).__name__}), not at something you did. "
        "The host's log says where. Try other settings."
    )


def _log(fault: Exception) -> None:
    """Write where a fault happened, without its text: that may hold a visitor's prompt."""
    frames = "".join(traceback.format_tb(fault.__traceback__))
    print(f"lab worker: {type(fault).__name__}\n{frames}", file=sys.stderr)  # noqa: T201


def _count(work: Work, inbox: _Inbox, outbox: Outbox) -> None:
    while True:
        message = inbox.counts.get()
        try:
            tokens = work.count_tokens(message["request"])
        except UserError:  # the request is refused with its sentence when it is submitted
            tokens = None
        except Exception as fault:  # noqa: BLE001 - a count must not end the worker
            _log(fault)
            tokens = None
        outbox.send({"type": "counted", "id": message["id"], "tokens": tokens})
