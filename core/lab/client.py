"""The server's door to the lab: submit, look, cancel. Thread-safe, and never loads torch.

One ``LabClient`` serves every visitor of a server. It keeps a lane for each device, with a worker
process of its own, and finished jobs for a while::

    lab = LabClient()
    job = lab.submit_run(RunRequest(prompt="Why is the sky blue?"), owner="visitor-1")
    while not (snapshot := lab.snapshot(job)).state.is_final:
        lab.touch(job)        # "my page is still open"
        time.sleep(0.3)
    lab.close()
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from core.errors import JobError, RequestError
from core.lab import calibration_file, sentences
from core.lab.experiment import check_kind
from core.lab.job import JobSnapshot
from core.lab.lane import Lane
from core.lab.limits import Limits
from core.lab.protocol import ProtocolError, encode
from core.lab.request import RunRequest
from core.lab.status import LabStatus, WorkerInfo
from core.lab.ticket import Ticket
from core.lab.token_counts import TokenCounts
from core.lab.worker_process import WorkerProcess, worker_command

_NOT_AN_OBJECT: Final = (
    "A request must be an object of finite numbers, words and lists; this one is not. Set it anew."
)
_TICK_S: Final = 0.2
_CLOSE_S: Final = 1.0
_FIRST_DEVICE: Final = "cpu"


class LabClient:
    """Queues jobs, supervises the workers, answers for the jobs.

    Args:
        limits: of a job and of the queue.
        command: device -> the command that starts its worker; tests pass a stand-in.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        command: Callable[[str], Sequence[str]] = worker_command,
    ) -> None:
        """Start the CPU's worker in the background; this returns at once."""
        self._limits = limits or Limits()
        self._command = command
        self._lock = threading.RLock()
        self._tickets: dict[str, Ticket] = {}
        self._counts = TokenCounts()
        self._closed = threading.Event()
        self._lanes: dict[str, Lane] = {}
        self._add_lane(_FIRST_DEVICE)
        threading.Thread(target=self._supervise, name="lab-supervisor", daemon=True).start()

    def submit_run(self, request: RunRequest, owner: str) -> str:
        """Queue one generation; its result is a run record.

        Raises:
            RequestError, FormatError: the request is outside its limits.
            JobError: the owner has a job already, the queue is full, the device is not there, or no
                worker can start.
        """
        request.validate()
        return self._submit("run", request.to_json(), request.device, owner)

    def submit_experiment(
        self, kind: str, payload: dict[str, Any], owner: str, device: str = _FIRST_DEVICE
    ) -> str:
        """Queue an experiment; its result is the record of its kind.

        Args:
            kind: one of ``core.lab.experiment.KINDS``.
            payload: its request as JSON; the worker checks it.
            owner: whose it is.
            device: where it runs.

        Raises:
            JobError: the kind is not known, or as for a run.
            RequestError: the request is not an object that JSON can say.
        """
        check_kind(kind)
        if not isinstance(payload, dict):
            raise RequestError(_NOT_AN_OBJECT)
        try:
            encode({"payload": payload})
        except (ProtocolError, TypeError, ValueError):
            raise RequestError(_NOT_AN_OBJECT) from None
        return self._submit(kind, payload, device, owner)

    def submit_quick_calibration(self, owner: str, device: str = _FIRST_DEVICE) -> str:
        """Queue a calibration of up to a minute; its result is a calibration.

        Raises:
            JobError: as for a run.
        """
        return self._submit("calibrate-quick", {}, device, owner)

    def submit_full_calibration(self, owner: str, device: str = _FIRST_DEVICE) -> str:
        """Queue a calibration of about four minutes; its result is a calibration.

        Raises:
            JobError: as for a run.
        """
        return self._submit("calibrate-full", {}, device, owner)

    def snapshot(self, job_id: str) -> JobSnapshot:
        """Where a job stands.

        Raises:
            JobError: the job is not known, or was forgotten.
        """
        with self._lock:
            ticket, lane, now = self._find(job_id), self._lane_of(job_id), time.monotonic()
            return ticket.snapshot(lane.queue.position(ticket), lane.queue.wait_s(ticket, now))

    def cancel(self, job_id: str) -> None:
        """Stop a job: at once where it waits; between two steps, or by force, where it runs.

        Raises:
            JobError: the job is not known.
        """
        with self._lock:
            ticket, now = self._find(job_id), time.monotonic()
            self._lane_of(job_id).cancel(ticket, now, sentences.CANCELLED)

    def touch(self, job_id: str) -> None:
        """Say that the job's owner is still there; an unknown job is nobody's, so nothing happens."""
        with self._lock:
            if ticket := self._tickets.get(job_id):
                ticket.seen_at = time.monotonic()

    def status(self, device: str = _FIRST_DEVICE) -> LabStatus:
        """How a device's lane stands; a device without one counts as the CPU's.

        ``info.devices`` of the CPU's lane names the devices there are.
        """
        with self._lock:
            return self._lanes.get(device, self._lanes[_FIRST_DEVICE]).status()

    def count_tokens(self, request: RunRequest) -> int | None:
        """Tokens of the request's prompt, template included; None while no worker can say.

        Waits a moment for the worker's side thread; the same prompt is counted once.
        """
        return self._counts.count(request, self._ask)

    def close(self) -> None:
        """End every job and every worker."""
        self._closed.set()
        with self._lock:
            now = time.monotonic()
            workers = [lane.close(now) for lane in self._lanes.values()]
        for worker in workers:
            if worker is not None:
                worker.close(_CLOSE_S)

    def _submit(self, kind: str, payload: dict[str, Any], device: str, owner: str) -> str:
        with self._lock:
            now = time.monotonic()
            self._forget_old(now)
            lane = self._lane(device)
            for other in self._tickets.values():
                if other.owner == owner and not other.state.is_final:
                    raise JobError(sentences.one_at_a_time(other.state.value))
            job_id = f"{device}-{secrets.token_hex(8)}"
            ticket = Ticket(job_id, owner, kind, payload, submitted_at=now, seen_at=now)
            lane.submit(ticket, now)
            self._tickets[job_id] = ticket
            return job_id

    def _find(self, job_id: str) -> Ticket:
        ticket = self._tickets.get(job_id)
        if ticket is None:
            raise JobError(sentences.NO_RESULT)
        return ticket

    def _lane_of(self, job_id: str) -> Lane:
        return self._lanes[job_id.partition("-")[0]]

    def _lane(self, device: str) -> Lane:
        if self._closed.is_set():
            raise JobError(sentences.CLOSED)
        lane = self._lanes.get(device)
        if lane is None:
            devices = self._lanes[_FIRST_DEVICE].info.devices
            raise JobError(sentences.no_device(device, devices) if devices else sentences.STILL_STARTING)
        return lane

    def _add_lane(self, device: str) -> None:
        self._lanes[device] = Lane(device, self._limits, self._start_worker, _known_before(device))

    def _start_worker(self, device: str) -> WorkerProcess:
        # The worker refuses what cannot fit; the limit itself is enforced from here.
        memory = ["--memory-bytes", str(self._limits.job_memory_bytes)]
        return WorkerProcess([*self._command(device), *memory], self._on_message, self._on_exit)

    def _forget_old(self, now: float) -> None:
        """Drop finished jobs that are too old or too many; dicts keep the order of submission."""
        finished = [ticket for ticket in self._tickets.values() if ticket.state.is_final]
        surplus = len(finished) - self._limits.results_kept
        for index, ticket in enumerate(finished):
            if index < surplus or now - ticket.finished_at > self._limits.results_kept_s:
                del self._tickets[ticket.id]

    # Threads: one supervisor; each worker's reader calls the two functions below it.

    def _supervise(self) -> None:
        while not self._closed.is_set():
            with self._lock:
                now = time.monotonic()
                self._forget_old(now)
                for lane in self._lanes.values():
                    lane.tick(now)
                for device in set(self._lanes[_FIRST_DEVICE].info.devices) - set(self._lanes):
                    self._add_lane(device)
            self._closed.wait(_TICK_S)

    def _on_message(self, worker: WorkerProcess, message: dict[str, Any]) -> None:
        if message["type"] == "counted":
            self._counts.answer(message["id"], message["tokens"])
            return
        with self._lock:
            now = time.monotonic()
            for lane in self._lanes.values():
                lane.receive(worker, message, now)

    def _on_exit(self, worker: WorkerProcess, returncode: int) -> None:
        with self._lock:
            now = time.monotonic()
            for lane in self._lanes.values():
                lane.exited(worker, returncode, now)

    def _ask(self, message: dict[str, Any]) -> bool:
        with self._lock:
            return self._lanes[_FIRST_DEVICE].ask(message)


def _known_before(device: str) -> WorkerInfo:
    """What can be said before the worker is ready: on a CPU, the calibration that is on disk."""
    if device != _FIRST_DEVICE:
        return WorkerInfo()
    stored = calibration_file.load(calibration_file.fingerprint(device, ""))
    return WorkerInfo(calibration=stored.calibration, calibration_message=stored.reason)
