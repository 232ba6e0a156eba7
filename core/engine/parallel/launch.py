"""Start processes that work together, wait for them, and let none outlive the others.

They are started afresh ("spawn") and meet at a store on this machine, whose port the system chooses.
The first that fails, a signal, or the time limit ends them all.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol, TypeVar

import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from core.errors import JobError, UserError

#: Seconds for the processes to start, load their shares and write; each loads torch anew.
LIMIT_S: Final = 300.0
#: Seconds between looks at the clock and at ``should_stop``.
_LOOK_S: Final = 0.1
#: Seconds in which others may say why, after one process has lost its neighbours.
_REASON_S: Final = 1.0
#: Seconds that a process has to end before it is killed.
_GRACE_S: Final = 2.0
_HOST: Final = "127.0.0.1"
_LOOPBACK: Final = {"linux": "lo", "darwin": "lo0"}

Result_co = TypeVar("Result_co", covariant=True)


class Task(Protocol[Result_co]):
    """What processes do together; small, since each gets a copy. ``core.engine.parallel.rank.Job`` is one."""

    @property
    def ranks(self) -> int:
        """Processes."""

    @property
    def backend(self) -> str:
        """How the processes talk."""

    def work(self, rank: int) -> Result_co:
        """Do one process's part; the process group stands."""


@dataclass(frozen=True, slots=True)
class Done:
    """A process has done its part."""

    result: Any


#: A process's last word: its result, why it could not work, or that an exchange failed.
Word = Done | UserError | str


def launch(
    job: Task[Result_co], *, limit_s: float = LIMIT_S, should_stop: Callable[[], bool] | None = None
) -> list[Result_co]:
    """Run a job on ``job.ranks`` processes of this machine; their results by rank.

    Args:
        job: what to do.
        limit_s: seconds until all are ended.
        should_stop: asked a few times a second.

    Raises:
        JobError: a process died, an exchange failed, the time was over, or the caller wants to stop.
        UserError: a process could not load its share.
    """
    end_s = time.monotonic() + limit_s
    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
    with _started(job, store.port, limit_s) as ranks:
        words: dict[int, Word] = {}
        while len(words) < job.ranks:
            if time.monotonic() > end_s:
                raise JobError(
                    f"The {job.ranks} processes must be done within {limit_s:.0f} s; they were not, and were "
                    "ended. Ask for fewer tokens or fewer processes, or give more time."
                )
            if should_stop is not None and should_stop():
                raise JobError("The run was stopped; all of its processes have ended.")
            _listen(ranks, words)
            _require_well(ranks, words)
        return [word.result for _, word in sorted(words.items()) if isinstance(word, Done)]


@contextmanager
def _started(job: Task[Any], port: int, limit_s: float) -> Iterator[list[tuple[BaseProcess, Connection]]]:
    """The processes and what they say; none is left afterwards, whatever happened."""
    context = multiprocessing.get_context("spawn")
    ranks: list[tuple[BaseProcess, Connection]] = []
    try:
        for rank in range(job.ranks):
            listener, speaker = context.Pipe(duplex=False)
            process = context.Process(
                target=_begin, args=(job, rank, port, limit_s, speaker), name=f"rank {rank}", daemon=True
            )
            with _interrupts_held():  # what was started is also ended
                process.start()
                ranks.append((process, listener))
            speaker.close()
        yield ranks
    finally:
        _end([process for process, _ in ranks])


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start processes that no Ctrl-C reaches, not even while they load their libraries.

    A terminal sends it to all processes, but it is the parent's, who ends them; it gets it right after. What
    is blocked here is blocked in whatever starts meanwhile.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it would unblock when it starts
    held: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()  # others get none, and may set no handler
    usual = signal.signal(signal.SIGINT, lambda number, _: held.append(number)) if in_main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if in_main:
            signal.signal(signal.SIGINT, usual or signal.default_int_handler)
        if held:
            signal.raise_signal(signal.SIGINT)


def _end(processes: list[BaseProcess]) -> None:
    end_s = time.monotonic() + _GRACE_S
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(max(end_s - time.monotonic(), 0))
        if process.is_alive():
            process.kill()
            process.join()


def _listen(ranks: list[tuple[BaseProcess, Connection]], words: dict[int, Word]) -> None:
    """Wait a moment for words of those that have not had their last."""
    open_ends = {listener: rank for rank, (_, listener) in enumerate(ranks) if rank not in words}
    for listener in wait(list(open_ends), _LOOK_S):
        rank = open_ends[listener]  # type: ignore[index]
        try:
            words[rank] = ranks[rank][1].recv()
        except EOFError:
            process = ranks[rank][0]
            process.join(_GRACE_S)
            code = process.exitcode or 0
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
            words[rank] = JobError(
                f"All {len(ranks)} processes must live until the text is written; rank {rank} ended early "
                f"({how}), and the others were ended. Try again, with fewer processes if memory is short."
            )


def _require_well(ranks: list[tuple[BaseProcess, Connection]], words: dict[int, Word]) -> None:
    """Raise what went wrong first: a mistake or a death rather than the silence that it left behind."""
    if all(isinstance(word, Done) for word in words.values()):
        return
    end_s = time.monotonic() + _REASON_S
    while time.monotonic() < end_s and len(words) < len(ranks):
        if any(isinstance(word, UserError) for word in words.values()):
            break
        _listen(ranks, words)
    for word in words.values():
        if isinstance(word, UserError):
            raise word
    rank, why = next((rank, word) for rank, word in words.items() if isinstance(word, str))
    raise JobError(
        f"All {len(ranks)} processes must reach each other; rank {rank} failed ({why}), and all were ended. "
        "Try again."
    )


# --- In the process --------------------------------------------------------------------------------


def _begin(job: Task[Any], rank: int, port: int, limit_s: float, speaker: Connection) -> None:
    """The first thing that a process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends all; see _interrupts_held
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    loopback = _LOOPBACK.get(sys.platform)
    if loopback:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    try:
        store = TCPStore(_HOST, port, is_master=False)
        dist.init_process_group(
            job.backend, store=store, rank=rank, world_size=job.ranks, timeout=timedelta(seconds=limit_s)
        )
        word: Word = Done(job.work(rank))
        dist.barrier()
        dist.destroy_process_group()
    except UserError as mistake:
        word = mistake
    except Exception as problem:  # noqa: BLE001 (whatever it is, the parent says it in a sentence)
        word = f"{type(problem).__name__}: {str(problem).splitlines()[0][:200] if str(problem) else ''}"
    with suppress(OSError):
        speaker.send(word)
        speaker.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
