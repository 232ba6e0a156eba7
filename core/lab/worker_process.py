"""One worker process as the server holds it: start, write, read, watch, kill.

It knows nothing of queues. Two threads belong to it: one writes, so that a worker that does not
read never blocks the server; one reads, checks each line, and reports the process's end.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import psutil

from core.lab.protocol import MAX_LINE_BYTES, REPLIES, ProtocolError, decode, encode

_PROJECT: Final = Path(__file__).parents[2]
#: Threads that wait for work spin for some microseconds and then sleep. Without the spin each of the
#: hundreds of operators of a step waits for a wake-up, and a small model takes twice as long; with the
#: library's own much longer spin, one busy neighbour makes it ten times as long.
_ENVIRONMENT: Final = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "20000", "PYTHONUNBUFFERED": "1"}


def worker_command(device: str) -> list[str]:
    """How the real worker of a device is started."""
    return [sys.executable, "-m", "core.lab.worker", "--device", device]


class WorkerProcess:
    """A running worker. ``on_message`` and ``on_exit`` are called from its reading thread."""

    def __init__(
        self,
        command: Sequence[str],
        on_message: Callable[[WorkerProcess, dict[str, Any]], None],
        on_exit: Callable[[WorkerProcess, int], None],
    ) -> None:
        """Start the process.

        Raises:
            OSError: the system could not start it.
        """
        self.fault = ""
        self._on_message = on_message
        self._on_exit = on_exit
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(  # noqa: S603 - the command is the project's own
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_PROJECT,
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,  # Ctrl-C in a terminal ends the server, and so the worker, once
        )
        for target in (self._write, self._read):
            threading.Thread(target=target, name=f"lab-worker-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def send(self, message: Mapping[str, Any]) -> None:
        """Hand one message to the writing thread."""
        self._outgoing.put(encode(message))

    def resident_bytes(self) -> int:
        """Memory the process holds now; 0 once it has ended."""
        try:
            resident: int = psutil.Process(self.pid).memory_info().rss
        except psutil.Error:
            return 0
        return resident

    def kill(self) -> None:
        """End the process at once; ``on_exit`` follows."""
        self._process.kill()

    def close(self, timeout_s: float) -> None:
        """Let the process end by closing its standard input, or kill it after ``timeout_s``."""
        self._outgoing.put(None)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self) -> None:
        stream = _pipe(self._process.stdin)
        with contextlib.suppress(BrokenPipeError):  # it has ended; the reading thread reports that
            while (line := self._outgoing.get()) is not None:
                stream.write(line)
                stream.flush()
        with contextlib.suppress(BrokenPipeError):
            stream.close()

    def _read(self) -> None:
        try:
            with _pipe(self._process.stdout) as stream:
                while line := stream.readline(MAX_LINE_BYTES + 1):
                    self._on_message(self, decode(line, REPLIES))
        except ProtocolError as error:
            self.fault = str(error)
            self._process.kill()
        returncode = self._process.wait()
        self._outgoing.put(None)
        self._on_exit(self, returncode)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the worker was started without its pipes")
    return stream
