"""Time on the host and on the device."""

from __future__ import annotations

import time

import torch


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was given; a CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class StepClock:
    """Times one step: wall time, and on a GPU the time between two events in its stream."""

    def __init__(self, device: torch.device) -> None:
        self._events = (
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
            if device.type == "cuda"
            else None
        )

    def start(self) -> None:
        """The step's first instruction."""
        self._host = time.perf_counter()
        if self._events:
            self._events[0].record()

    def launched(self) -> None:
        """Everything has been given to the device."""
        if self._events:
            self._events[1].record()

    def stop(self) -> tuple[float, float]:
        """The result is on the host: seconds on the device, and wall seconds."""
        host_s = time.perf_counter() - self._host
        if self._events is None:
            return host_s, host_s
        return self._events[0].elapsed_time(self._events[1]) / 1e3, host_s
