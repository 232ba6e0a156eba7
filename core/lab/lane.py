"""One device's lane: its queue and the life of its worker process.

Every method is called with the client's lock held. A lane decides and never waits; time comes in
from outside (``now``, of ``time.monotonic``).

A worker's life: starting -> warming -> ready <-> busy; from anywhere -> restarting -> starting. It
counts as failed after several deaths at its start; it is then still tried, at long intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from core.errors import JobError, RecordError
from core.lab import sentences
from core.lab.calibration import Calibration
from core.lab.job import JobState
from core.lab.job_queue import JobQueue
from core.lab.limits import Limits
from core.lab.protocol import ProtocolError
from core.lab.status import LabStatus, WorkerInfo, WorkerState, info_from_json, with_calibration
from core.lab.ticket import Ticket
from core.lab.worker_process import WorkerProcess

#: Kinds of job whose result is a calibration.
CALIBRATION_KINDS: Final = ("calibrate-quick", "calibrate-full")
#: Deaths outside a job, one after another, until the lane says that it cannot work.
_DEATHS_BEFORE_FAILED: Final = 3
#: A worker that was ready for so long died of something new.
_STABLE_S: Final = 60.0
_LONGEST_MESSAGE: Final = 1000


class Lane:
    """The queue and the worker of one device."""

    def __init__(
        self, device: str, limits: Limits, start: Callable[[str], WorkerProcess], info: WorkerInfo
    ) -> None:
        self.device = device
        self.info = info
        self.queue = JobQueue()
        self._limits = limits
        self._start = start
        self._state: WorkerState = "starting"
        self._phase: tuple[str, float | None] = ("", None)
        self._message = ""
        self._worker: WorkerProcess | None = None
        self._deaths = 0
        self._restart_at = 0.0
        self._heard_at = self._ready_at = 0.0
        self._killed_by_us = False

    # What visitors ask for

    def submit(self, ticket: Ticket, now: float) -> None:
        """Put a job at the end of the queue, and start it where nothing is ahead of it.

        Raises:
            JobError: the queue is full, or the worker cannot start.
        """
        if self._state == "failed":
            raise JobError(sentences.cannot_start(self._message))
        if len(self.queue) >= self._limits.queue_length:
            raise JobError(sentences.queue_full(self._limits.queue_length, self.queue.wait_s(None, now)))
        self.queue.add(ticket)
        self._dispatch(now)

    def cancel(self, ticket: Ticket, now: float, message: str) -> None:
        """Take a waiting job out; ask a running one to stop (it is killed after a grace)."""
        if self.queue.remove(ticket):
            ticket.finish(JobState.CANCELLED, now, message)
        elif ticket is self.queue.running and ticket.cancelled_at is None and self._worker:
            ticket.cancelled_at, ticket.message = now, message
            self._worker.send({"type": "cancel", "id": ticket.id})

    def ask(self, message: dict[str, Any]) -> bool:
        """Send a question to the worker's side thread; False where no worker is ready."""
        if self._worker is None or self._state != "ready":
            return False
        self._worker.send(message)
        return True

    def status(self) -> LabStatus:
        """How the lane stands."""
        return LabStatus(
            device=self.device,
            state="busy" if self._state == "ready" and self.queue.running else self._state,
            message=self._message,
            phase=self._phase[0],
            fraction=self._phase[1],
            queue_length=len(self.queue),
            worker_pid=self._worker.pid if self._worker else None,
            info=self.info,
        )

    # What time brings

    def tick(self, now: float) -> None:
        """Enforce the limits and keep a worker alive."""
        for ticket in self.queue:
            if now - ticket.seen_at > self._limits.owner_grace_s:
                self.cancel(ticket, now, sentences.vanished(self._limits.owner_grace_s))
        if self._worker is None:
            self._restart(now)
        elif self.queue.running:
            self._enforce(self._worker, self.queue.running, now)
        elif self._state != "ready" and now - self._heard_at > self._limits.start_s:
            self._message = sentences.slow_start(self._limits.start_s)
            self._worker.kill()

    def close(self, now: float) -> WorkerProcess | None:
        """End every job and take no part any more; the caller closes the process returned."""
        for ticket in self.queue:
            self.queue.remove(ticket)
            ticket.finish(JobState.CANCELLED, now, sentences.CLOSED)
        worker, self._worker, self._state = self._worker, None, "closed"
        return worker

    def _enforce(self, worker: WorkerProcess, ticket: Ticket, now: float) -> None:
        limits = self._limits
        if ticket.cancelled_at is not None:
            if now - ticket.cancelled_at > limits.cancel_grace_s:
                self._kill(worker, JobState.CANCELLED, ticket.message, now)
        elif now - ticket.started_at > (longest_s := _longest_s(ticket, limits)):
            self._kill(worker, JobState.FAILED, sentences.too_long(longest_s), now)
        elif worker.resident_bytes() > limits.job_memory_bytes:
            self._kill(worker, JobState.FAILED, sentences.too_much_memory(limits.job_memory_bytes), now)

    def _kill(self, worker: WorkerProcess, state: JobState, message: str, now: float) -> None:
        self._finish(state, now, message)
        self._state, self._killed_by_us = "restarting", True
        worker.kill()

    def _restart(self, now: float) -> None:
        if self._state == "closed" or now < self._restart_at:
            return
        self._heard_at, self._killed_by_us = now, False
        try:
            self._worker = self._start(self.device)
        except OSError as error:
            self._count_death(f"the system refused: {error.strerror}", now)
            return
        if self._state == "restarting":
            self._state = "starting"

    def _dispatch(self, now: float) -> None:
        if self._state != "ready" or self._worker is None:
            return
        if ticket := self.queue.start_next(now):
            job = {"type": "job", "id": ticket.id, "kind": ticket.kind, "payload": ticket.payload}
            self._worker.send(job)

    def _finish(self, state: JobState, now: float, message: str = "") -> None:
        ticket, self.queue.running = self.queue.running, None
        if ticket is not None:
            ticket.finish(state, now, message)

    # What the worker says

    def receive(self, worker: WorkerProcess, message: dict[str, Any], now: float) -> None:
        """Act on one message of the present worker.

        Raises:
            ProtocolError: the message does not fit; its process is then replaced.
        """
        if worker is not self._worker:
            return
        self._heard_at = now
        if message["type"] == "warming":
            self._phase = (message["phase"], _fraction(message))
            self._state = "warming" if self._state == "starting" else self._state
        elif message["type"] == "broken":
            self._message = message["message"][:_LONGEST_MESSAGE]
        elif message["type"] == "calibrated":
            self._keep_calibration(message["calibration"])
        elif message["type"] == "ready":
            self.info = info_from_json(message["info"])
            self._state, self._phase, self._message, self._ready_at = "ready", ("", None), "", now
        elif self.queue.running and message["id"] == self.queue.running.id:
            self._receive_for(self.queue.running, message, now)
        self._dispatch(now)

    def _receive_for(self, ticket: Ticket, message: dict[str, Any], now: float) -> None:
        match message["type"]:
            case "progress":
                ticket.phase, ticket.fraction = message["phase"], _fraction(message)
            case "step":
                ticket.add_step(message["text"], message["step"])
            case "part":
                ticket.add_part(message["part"])
            case "done":
                if ticket.kind in CALIBRATION_KINDS:
                    self._keep_calibration(message["result"])
                ticket.result, self._deaths = message["result"], 0
                self.queue.learn(ticket.kind, now - ticket.started_at)
                self._finish(JobState.DONE, now)
            case "failed":
                self._finish(JobState.FAILED, now, message["message"][:_LONGEST_MESSAGE])
            case "cancelled":
                self._finish(JobState.CANCELLED, now, ticket.message or sentences.CANCELLED)

    def _keep_calibration(self, data: dict[str, Any]) -> None:
        try:
            self.info = with_calibration(self.info, Calibration.from_json(data))
        except RecordError as error:
            raise ProtocolError("a calibration does not fit its form") from error

    def exited(self, worker: WorkerProcess, returncode: int, now: float) -> None:
        """Tell the running job's owner, and plan the next worker."""
        if worker is not self._worker:
            return
        self._worker = None
        running = self.queue.running
        if running and running.cancelled_at is not None:
            self._finish(JobState.CANCELLED, now, running.message)
        elif running:
            self._finish(JobState.FAILED, now, sentences.died(returncode, worker.fault))
        if running or self._killed_by_us:  # the job's fault, so nobody else waits for it
            self._state, self._restart_at = "restarting", now
            return
        if self._state == "ready" and now - self._ready_at > _STABLE_S:
            self._deaths = 0
        self._count_death(self._message or sentences.ended(returncode, worker.fault), now)

    def _count_death(self, why: str, now: float) -> None:
        """Wait longer after each death; after several, tell everyone who waits."""
        waits = self._limits.restart_s
        self._restart_at = now + waits[min(self._deaths, len(waits) - 1)]
        self._deaths += 1
        self._state, self._message = "restarting", why
        if self._deaths >= _DEATHS_BEFORE_FAILED:
            self._state = "failed"
            for ticket in self.queue:
                self.queue.remove(ticket)
                ticket.finish(JobState.FAILED, now, sentences.cannot_start(why))


def _longest_s(ticket: Ticket, limits: Limits) -> float:
    return limits.calibration_s if ticket.kind in CALIBRATION_KINDS else limits.job_s


def _fraction(message: dict[str, Any]) -> float | None:
    value = message.get("fraction")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return min(max(float(value), 0.0), 1.0)
