"""The limits of the lab: what one job may take, and how many may wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from core.units import GIB

_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
#: The part of the machine's memory that one job may take; the rest is the server's and the system's.
_MEMORY_SHARE: Final = 0.75
_MOST_MEMORY_BYTES: Final = 64 * GIB


def memory_bytes() -> int:
    """The memory this process may use: the machine's, or its container's where that is less."""
    total: int = psutil.virtual_memory().total
    try:
        text = _CGROUP_LIMIT.read_text().strip()
    except OSError:  # no such file: the machine is not a Linux container
        return total
    return min(total, int(text)) if text.isdigit() else total


def _default_job_memory_bytes() -> int:
    return min(int(memory_bytes() * _MEMORY_SHARE), _MOST_MEMORY_BYTES)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep one visitor from taking the machine away from the others.

    Attributes:
        job_s: the longest a job may run. calibration_s: the same for a calibration.
        job_memory_bytes: the most resident memory of the worker.
        queue_length: jobs that may wait on one device.
        owner_grace_s: a job is cancelled when its owner was not seen for so long; a reload of the
            page takes less.
        cancel_grace_s: how long a job may take to stop politely before its worker is killed.
        start_s: how long a worker that is not ready for jobs may say nothing.
        results_kept, results_kept_s: finished jobs that can still be looked up.
        restart_s: waits before a worker that died by itself is started again; the last one repeats.
    """

    job_s: float = 120.0
    calibration_s: float = 360.0
    job_memory_bytes: int = field(default_factory=_default_job_memory_bytes)
    queue_length: int = 20
    owner_grace_s: float = 15.0
    cancel_grace_s: float = 2.0
    start_s: float = 300.0
    results_kept: int = 50
    results_kept_s: float = 1800.0
    restart_s: tuple[float, ...] = (0.0, 1.0, 5.0, 30.0)
