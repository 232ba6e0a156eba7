"""What the lab tells a job's owner when it did not end as wished: what holds, what came, what to do."""

from __future__ import annotations

import signal
from typing import Final

from core.units import format_gib, format_seconds

CANCELLED: Final = "You cancelled this job."
CLOSED: Final = "The lab must be open for a job to run, and it was closed. Start the app again."
NO_RESULT: Final = (
    "Finished jobs are kept for a while, and this one is not known any more. Start it again, or load "
    "its saved record."
)
STILL_STARTING: Final = (
    "The lab must be ready before it knows which devices there are, and it is still starting. Try again "
    "in a few seconds."
)


def no_device(device: str, devices: tuple[str, ...]) -> str:
    """A device was asked for that this machine lacks."""
    return (
        f"The device must be one of {', '.join(devices)} on this machine; got {device!r}. Choose one of them."
    )


def one_at_a_time(state: str) -> str:
    """An owner asked for a second job."""
    return f"Each visitor may have one job at a time, and yours is {state}. Wait for it, or cancel it first."


def queue_full(length: int, wait_s: float | None) -> str:
    """Too many wait already."""
    when = "in a minute" if wait_s is None else f"in about {format_seconds(max(wait_s, 1.0))}"
    return f"Up to {length} jobs may wait, and the queue is full. Try again {when}."


def cannot_start(why: str) -> str:
    """The worker died at its start, again and again."""
    return (
        "Measurements need a worker process, and it could not start "
        f"({why}). The host's log says more; the app tries again by itself."
    )


def slow_start(limit_s: float) -> str:
    """The worker said nothing for too long while it started."""
    return f"it said nothing for {format_seconds(limit_s)}"


def ended(returncode: int, fault: str) -> str:
    """How a process ended, as a clause."""
    if fault:
        return f"it sent something unreadable: {fault}"
    if returncode < 0:
        return f"it was killed by signal {-returncode}, {signal.Signals(-returncode).name}"
    return f"it ended with status {returncode}"


def died(returncode: int, fault: str) -> str:
    """The worker ended in the middle of a job, not by our hand."""
    if returncode == -signal.SIGKILL and not fault:
        return (
            "A job needs its worker process to live, and the system killed it, most often because memory "
            "ran out. Choose a smaller model or a shorter run, and start it again."
        )
    return (
        f"A job needs its worker process to live, but {ended(returncode, fault)}. A new one is starting; "
        "start the job again."
    )


def too_long(limit_s: float) -> str:
    """A job passed its time limit."""
    return (
        f"A job may take up to {format_seconds(limit_s)}, and this one took longer, so it was stopped. "
        "Ask for fewer tokens or choose a smaller model."
    )


def too_much_memory(limit_bytes: int) -> str:
    """A job passed its memory limit."""
    return (
        f"A job may use up to {format_gib(limit_bytes)} of memory, and this one used more, so it was "
        "stopped. Choose a smaller model, a smaller format or a shorter run."
    )


def vanished(grace_s: float) -> str:
    """The owner's page is gone."""
    return (
        f"A job runs as long as its page is open, and that was not seen for {format_seconds(grace_s)}, so "
        "the job was cancelled. Start it again."
    )
