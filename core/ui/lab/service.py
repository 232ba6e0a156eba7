"""The one lab of this server, and which visit owns which job.

A visit is a browser tab. Its key lives in the tab's own session storage, so a reload finds its job
again, while another visitor cannot: the key never stands in a link.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import streamlit as st

from core.lab.client import LabClient
from core.lab.experiment import Experiment
from core.lab.job import JobSnapshot
from core.lab.request import RunRequest
from core.lab.status import LabStatus

_MOST_VISITS: Final = 500


class Lab(Protocol):
    """What the page needs of the lab; ``LabClient`` is one, and tests bring their own."""

    def submit_run(self, request: RunRequest, owner: str) -> str:
        """Queue one generation."""

    def submit_experiment(self, kind: str, payload: dict[str, Any], owner: str, device: str = ...) -> str:
        """Queue an experiment."""

    def submit_full_calibration(self, owner: str, device: str = ...) -> str:
        """Queue a full calibration."""

    def snapshot(self, job_id: str) -> JobSnapshot:
        """Where a job stands."""

    def cancel(self, job_id: str) -> None:
        """Stop a job."""

    def touch(self, job_id: str) -> None:
        """Say that the owner is still there."""

    def status(self, device: str = ...) -> LabStatus:
        """How a device's lane stands."""

    def count_tokens(self, request: RunRequest) -> int | None:
        """Tokens of the prompt, None while that is unknown."""


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job, the name it runs under, and what it was asked for: a run, an experiment, or a calibration."""

    id: str
    owner: str
    request: RunRequest | None
    experiment: Experiment | None = None


@dataclass(slots=True)
class Visits:
    """The latest job and settings of each recent visit, by its key; bounded, and of this process only."""

    _jobs: OrderedDict[str, OwnJob] = field(default_factory=OrderedDict)
    _settings: OrderedDict[str, RunRequest] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def remember(self, visit: str, job: OwnJob) -> None:
        """Keep a visit's job, so that a reload of its tab finds it."""
        with self._lock:
            self._jobs[visit] = job
            self._jobs.move_to_end(visit)
            while len(self._jobs) > _MOST_VISITS:
                self._jobs.popitem(last=False)

    def note(self, visit: str, settings: RunRequest) -> None:
        """Keep what a visit's controls say now, for a reload while its job is under way."""
        with self._lock:
            if visit in self._jobs:
                self._settings[visit] = settings
                self._settings.move_to_end(visit)
                while len(self._settings) > _MOST_VISITS:
                    self._settings.popitem(last=False)

    def settings_of(self, visit: str) -> RunRequest | None:
        """What a visit's controls said last while it had a job; None where nothing is known."""
        with self._lock:
            return self._settings.get(visit)

    def job_of(self, visit: str) -> OwnJob | None:
        """The job a visit started last; None where there is none."""
        with self._lock:
            return self._jobs.get(visit)


@st.cache_resource(show_spinner=False, max_entries=1)
def lab() -> Lab:
    """The lab of this server; its worker starts with the first visit."""
    # What is imported by now stays; leaving it out of every collection keeps reruns short.
    gc.freeze()
    return LabClient()


@st.cache_resource(show_spinner=False, max_entries=1)
def visits() -> Visits:
    """The visits of this server."""
    return Visits()
