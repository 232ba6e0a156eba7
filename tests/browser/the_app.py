"""Starts the real app on a free port, and finds the system's Chromium; for tests and benchmarks."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.storage import CACHE_VARIABLE

ROOT = Path(__file__).parents[2]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HEALTHY_S = 30.0


@dataclass(frozen=True)
class App:
    """A running app: where it answers, its process, and how long it took to be healthy."""

    address: str
    process: subprocess.Popen[bytes]
    healthy_after_s: float


def chromium_path() -> str | None:
    """Where the browser is; None where there is none."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


@contextmanager
def running_app(folder: Path, script: str = "app.py") -> Iterator[App]:
    """The app with a cache folder and a log in ``folder``; it ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1"]
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache")}
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            wait_until_healthy(address, process)
            yield App(address, process, time.monotonic() - start)
        finally:
            process.terminate()
            process.wait(timeout=20)


def wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    """Ask for the app's health until it answers."""
    deadline = time.monotonic() + HEALTHY_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:  # noqa: S310
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    raise TimeoutError(f"The app was not healthy within {HEALTHY_S:.0f} s.")
