"""A lab with a fake worker, small limits, and a way to wait for what it does."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.lab.client import LabClient
from core.lab.job import JobSnapshot, JobState
from core.lab.limits import Limits
from core.lab.request import RunRequest
from core.units import MIB

FAKE_WORKER = Path(__file__).parent / "fake_worker.py"
PATIENCE_S = 20.0


def fake_command(device: str) -> list[str]:
    return [sys.executable, str(FAKE_WORKER), device]


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for something that must happen; fail with its name where it does not."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {patience_s:.0f} s for: {what}")
        time.sleep(0.01)


class Visitor:
    """One owner of jobs, with a page that stays open until told otherwise."""

    def __init__(self, lab: LabClient, name: str) -> None:
        self.lab, self.name = lab, name

    def run(self, prompt: str) -> str:
        return self.lab.submit_run(RunRequest(prompt=prompt), self.name)

    def wait_for(self, job: str, *states: JobState, patience_s: float = PATIENCE_S) -> JobSnapshot:
        def there() -> bool:
            self.lab.touch(job)
            return self.lab.snapshot(job).state in states

        wait_until(there, f"{job} to become {states}", patience_s)
        return self.lab.snapshot(job)

    def wait_for_end(self, job: str, patience_s: float = PATIENCE_S) -> JobSnapshot:
        return self.wait_for(job, JobState.DONE, JobState.FAILED, JobState.CANCELLED, patience_s=patience_s)


@pytest.fixture
def limits() -> Limits:
    return Limits(
        job_s=3.0,
        job_memory_bytes=300 * MIB,
        queue_length=3,
        owner_grace_s=5.0,
        cancel_grace_s=0.3,
        restart_s=(0.0, 0.1),
    )


@pytest.fixture
def lab(limits: Limits) -> Iterator[LabClient]:
    client = LabClient(limits, fake_command)
    yield client
    client.close()


@pytest.fixture
def ready_lab(lab: LabClient) -> LabClient:
    wait_until(lambda: lab.status().state == "ready", "the worker to be ready")
    return lab
