"""A job as its owner sees it: one immutable picture, whatever the worker is doing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.analytic.step_record import StepRecord


class JobState(StrEnum):
    """The life of a job: queued -> running -> done, failed or cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Nothing more will happen to the job."""
        return self in {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """Where a job stands.

    Attributes:
        id: the job's id. state: see JobState.
        position: jobs ahead of it on its device; 0 once it runs.
        estimated_wait_s: until it starts, from the jobs ahead; None while that is unknown.
        phase: "loading", "calibrating", "rehearsing", "warming up", "measuring", "profiling" or empty.
        fraction: progress of the phase from 0 to 1; None while that is unknown.
        text: what the model has written so far.
        steps: one record a finished step.
        parts: finished parts of the result, for kinds of jobs that have some.
        result: the finished job's JSON (a run record, or a calibration), None before.
        message: why it failed, as a sentence; empty otherwise.
    """

    id: str
    state: JobState
    position: int = 0
    estimated_wait_s: float | None = None
    phase: str = ""
    fraction: float | None = None
    text: str = ""
    steps: tuple[StepRecord, ...] = field(default_factory=tuple)
    parts: tuple[dict[str, Any], ...] = ()
    result: dict[str, Any] | None = None
    message: str = ""
