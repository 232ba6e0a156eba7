"""A job as the queue holds it. Visitors see immutable pictures of it (``JobSnapshot``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from core.analytic.step_record import StepRecord
from core.lab.job import JobSnapshot, JobState
from core.lab.protocol import ProtocolError
from core.lab.step_json import step_from_json

#: More steps or text than any run may produce; a worker that sends more is faulty.
_MOST_STEPS: Final = 4096
_MOST_CHARACTERS: Final = 1_000_000
_MOST_PARTS: Final = 512


@dataclass(slots=True)
class Ticket:
    """One job from its submission until it is forgotten; times are of ``time.monotonic``."""

    id: str
    owner: str
    kind: str
    payload: dict[str, Any]
    submitted_at: float
    seen_at: float
    state: JobState = JobState.QUEUED
    started_at: float = 0.0
    finished_at: float = 0.0
    cancelled_at: float | None = None
    phase: str = ""
    fraction: float | None = None
    text: list[str] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    message: str = ""

    def start(self, now: float) -> None:
        """Mark it as running."""
        self.state, self.started_at = JobState.RUNNING, now

    def finish(self, state: JobState, now: float, message: str = "") -> None:
        """Mark it as done, failed or cancelled; nothing changes it after that."""
        self.state, self.finished_at, self.message = state, now, message
        self.phase, self.fraction = "", None
        self.payload = {}

    def add_step(self, text: str, data: dict[str, Any]) -> None:
        """Append one streamed step.

        Raises:
            ProtocolError: it is not a step record, or there are more than a run can have.
        """
        if len(self.steps) >= _MOST_STEPS or len(text) > _MOST_CHARACTERS:
            raise ProtocolError("a job streams more than a run can produce")
        try:
            self.steps.append(step_from_json(data))
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        self.text.append(text)

    def add_part(self, part: dict[str, Any]) -> None:
        """Append one streamed part of the result.

        Raises:
            ProtocolError: there are more than any job has.
        """
        if len(self.parts) >= _MOST_PARTS:
            raise ProtocolError("a job streams more parts than any has")
        self.parts.append(part)

    def snapshot(self, position: int, estimated_wait_s: float | None) -> JobSnapshot:
        """What its owner sees now."""
        return JobSnapshot(
            id=self.id,
            state=self.state,
            position=position,
            estimated_wait_s=estimated_wait_s,
            phase=self.phase,
            fraction=self.fraction,
            text="".join(self.text),
            steps=tuple(self.steps),
            parts=tuple(self.parts),
            result=self.result,
            message=self.message,
        )
