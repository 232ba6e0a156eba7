"""The host as a measurement sees it: what it is, and who else is using it.

No torch here: the server asks the same questions.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

#: Part of the host's processor time that other processes may take before a run counts as noisy.
OTHERS_LIMIT: Final = 0.15
#: Part of it that a hypervisor may give to other machines.
STEAL_LIMIT: Final = 0.03


def cpu_name() -> str:
    """The processor's name; the platform's word for it where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def usable_cores() -> int:
    """Cores this process may run on: its affinity, and its container's quota where that is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota_cores() or cores))


def physical_cores() -> int:
    """Usable cores without their second hardware threads: what a bandwidth-bound job can use."""
    logical, physical = psutil.cpu_count() or 1, psutil.cpu_count(logical=False) or 1
    return max(1, usable_cores() * physical // logical)


def _quota_cores() -> int | None:
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):  # no container limit that we can read
        return None
    return None if quota == "max" else max(1, int(quota) // int(period))


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Who used the processors during a measurement, as parts of all their time.

    Attributes:
        others: used by processes other than the measuring one.
        steal: given by the hypervisor to other machines. duration_s: of the measurement.
    """

    others: float
    steal: float
    duration_s: float

    def reasons(self) -> list[str]:
        """Why a measurement under this load is noisy; empty where it is not."""
        reasons = []
        if self.others > OTHERS_LIMIT:
            reasons.append(f"other programs used {self.others:.0%} of the processors")
        if self.steal > STEAL_LIMIT:
            reasons.append(f"the hypervisor gave {self.steal:.0%} of the processors to other machines")
        return reasons


class LoadProbe:
    """Watches the host from its creation until ``stop``; it costs two reads of counters."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._start = self._read()

    def stop(self) -> HostLoad:
        """The load since the start."""
        before, after = self._start, self._read()
        duration_s = max(after[0] - before[0], 1e-6)
        total_s = duration_s * (psutil.cpu_count() or 1)
        own_s, busy_s, steal_s = (after[i] - before[i] for i in (1, 2, 3))
        # The system counts in ticks of a hundredth of a second, so short measurements are rough.
        return HostLoad(_part(busy_s - own_s, total_s), _part(steal_s, total_s), duration_s)

    def _read(self) -> tuple[float, float, float, float]:
        own: Any = self._process.cpu_times()
        every: Any = psutil.cpu_times()
        busy_s = sum(getattr(every, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
        # Processes that this one started and that have ended are its own work too.
        ended_s = getattr(own, "children_user", 0.0) + getattr(own, "children_system", 0.0)
        return time.monotonic(), own.user + own.system + ended_s, busy_s, getattr(every, "steal", 0.0)


def _part(part_s: float, total_s: float) -> float:
    return min(max(part_s / total_s, 0.0), 1.0)
