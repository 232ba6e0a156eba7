"""A lab without a worker: the tests say what every job does, and records hold together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.analytic.step_record import StepRecord
from core.errors import JobError, UserError
from core.lab.job import JobSnapshot, JobState
from core.lab.predict import predict
from core.lab.record import RunRecord
from core.lab.record_parts import Measured
from core.lab.request import RunRequest
from core.lab.status import LabStatus, WorkerInfo
from core.ui.lab import models
from tests.lab import examples

PROMPT_TOKENS = 12
OFFERED = ("smollm2-135m", "shape:qwen3-0.6b", "shape:llama-3.2-1b")


def ready(**changes: object) -> LabStatus:
    """A worker that waits for jobs."""
    info = WorkerInfo(
        devices=("cpu",),
        torch_version="2.13.0",
        threads=2,
        models=OFFERED,
        calibration=examples.calibration(),
    )
    return replace(LabStatus("cpu", "ready", info=info), **changes)  # type: ignore[arg-type]


def record_of(request: RunRequest, slowness: float = 1.1, noisy: tuple[str, ...] = ()) -> RunRecord:
    """A run of any request, somewhat slower than predicted and a little uneven."""
    calibration, model = examples.calibration(), models.spec(request.model)
    prediction = predict(request, PROMPT_TOKENS, model, calibration.machine(request.weights))
    uneven = slowness * (1 + 0.06 * np.sin(np.arange(request.max_tokens) * 1.7))
    seconds = [float(value) for value in np.array(prediction.step_s) * uneven]
    parts = {"prefill": prediction.prefill, "decode": prediction.decode}
    tpot_s = sum(seconds[1:]) / len(seconds[1:]) if seconds[1:] else None
    return replace(
        examples.record(),
        request=request,
        prediction=prediction,
        text="Because air scatters blue light more than red light. " * 4,
        steps=tuple(
            examples.step(index, PROMPT_TOKENS + index, value) for index, value in enumerate(seconds)
        ),
        measured=Measured(
            ttft_s=seconds[0],
            tpot_s=tpot_s,
            prefill_repeats_s=tuple(seconds[0] * factor for factor in (1.0, 0.98, 1.03)),
            decode_repeats_s=() if tpot_s is None else tuple(tpot_s * f for f in (0.97, 1.0, 1.04) * 10),
            operators_s={
                phase: {name: _passes(value, position) for position, (name, value) in rows(part.operators_s)}
                for phase, part in parts.items()
                if part is not None
            },
            peak_memory_bytes=int(prediction.total_memory_bytes * 1.02),
            resident_bytes=600_000_000,
        ),
        noisy=noisy,
    )


def rows(operators_s: dict[str, float]) -> list[tuple[int, tuple[str, float]]]:
    return list(enumerate(operators_s.items()))


def _passes(seconds: float, position: int) -> tuple[float, ...]:
    factor = 0.8 + 0.1 * (position % 6)
    return tuple(seconds * factor * spread for spread in (0.95, 1.0, 1.0, 1.08))


@dataclass
class FakeLab:
    """Behaves like a ``LabClient`` whose worker does what the test says.

    Attributes:
        now: the status of the worker. becomes: how the next job stands, right after its submission.
        jobs: what each job's owner sees. refusal: what a submission is refused with.
    """

    now: LabStatus = field(default_factory=ready)
    becomes: JobSnapshot = field(default_factory=lambda: JobSnapshot("", JobState.RUNNING))
    jobs: dict[str, JobSnapshot] = field(default_factory=dict)
    requests: dict[str, RunRequest] = field(default_factory=dict)
    experiments: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)
    refusal: UserError | None = None
    counts: bool = True

    def submit_run(self, request: RunRequest, owner: str) -> str:
        request.validate()
        if self.refusal is not None:
            raise self.refusal
        job_id = f"cpu-{len(self.jobs)}"
        self.jobs[job_id] = replace(self.becomes, id=job_id)
        self.requests[job_id], self.owners[job_id] = request, owner
        return job_id

    def submit_experiment(self, kind: str, payload: dict[str, Any], owner: str, device: str = "cpu") -> str:
        if self.refusal is not None:
            raise self.refusal
        job_id = f"{device}-{len(self.jobs)}"
        self.jobs[job_id], self.owners[job_id] = replace(self.becomes, id=job_id), owner
        self.experiments[job_id] = kind, payload
        return job_id

    def submit_full_calibration(self, owner: str, device: str = "cpu") -> str:
        job_id = f"{device}-{len(self.jobs)}"
        self.jobs[job_id], self.owners[job_id] = replace(self.becomes, id=job_id), owner
        return job_id

    def snapshot(self, job_id: str) -> JobSnapshot:
        if job_id not in self.jobs:
            raise JobError("This job is not known any more. Start it again.")
        return self.jobs[job_id]

    def cancel(self, job_id: str) -> None:
        self.end(job_id, JobState.CANCELLED, "You cancelled this job.")

    def touch(self, job_id: str) -> None:
        self.touched.append(job_id)

    def status(self, device: str = "cpu") -> LabStatus:
        return self.now

    def count_tokens(self, request: RunRequest) -> int | None:
        return PROMPT_TOKENS if self.counts else None

    # What a test makes happen

    def write(self, job_id: str, words: str, tokens: int) -> None:
        steps: tuple[StepRecord, ...] = tuple(
            examples.step(i, PROMPT_TOKENS + i, 0.01) for i in range(tokens)
        )
        self.jobs[job_id] = replace(
            self.jobs[job_id],
            state=JobState.RUNNING,
            phase="measuring",
            fraction=0.4,
            text=words,
            steps=steps,
        )

    def finish(self, job_id: str, slowness: float = 1.1, noisy: tuple[str, ...] = ()) -> None:
        record = record_of(self.requests[job_id], slowness, noisy)
        self.jobs[job_id] = JobSnapshot(job_id, JobState.DONE, text=record.text, result=record.to_json())

    def finish_experiment(self, job_id: str, result: dict[str, Any]) -> None:
        self.jobs[job_id] = JobSnapshot(job_id, JobState.DONE, result=result)

    def end(self, job_id: str, state: JobState, message: str) -> None:
        self.jobs[job_id] = replace(self.jobs[job_id], state=state, message=message)
