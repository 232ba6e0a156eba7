"""``python -m core.lab.worker --device cpu``: started by the server, spoken to over pipes."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from core.lab.limits import Limits
from core.lab.request import DEVICES
from core.lab.worker.loop import Work, serve

STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
#: Of 20 steps of courtesy: beside a page that answers a visitor, the worker gets a quarter of a core.
_COURTESY = 5
#: Linux shares cores among sessions first, each with a courtesy of its own; a worker has its own session.
_SESSION = Path("/proc/self/autogroup")


def main() -> None:
    """Serve jobs until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m core.lab.worker", description=__doc__)
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--memory-bytes", type=int, default=Limits().job_memory_bytes)
    args = parser.parse_args()
    _give_way()
    # Messages alone may go to the pipe: whatever a library prints goes to the host's log instead.
    messages = os.fdopen(os.dup(STANDARD_OUTPUT), "wb")
    os.dup2(STANDARD_ERROR, STANDARD_OUTPUT)
    serve(lambda: _engine_work(args.device, args.memory_bytes), sys.stdin.buffer, messages)


def _give_way() -> None:
    """Let the server and a browser on the same cores go first; where nobody else works, nothing changes."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(_COURTESY)
    with contextlib.suppress(OSError):  # another system, or sessions that do not share
        _SESSION.write_text(str(_COURTESY))


def _engine_work(device: str, memory_bytes: int) -> Work:
    # Imported here, when the loop already listens: loading torch takes seconds.
    module: Any = importlib.import_module("core.lab.worker.work")
    work: Work = module.EngineWork(device, memory_bytes)
    return work


main()
