"""What the web server costs: how soon it is healthy, and its memory with ten visitors.

Visitors are real sessions: each opens the app's websocket in a browser context of its own and
changes controls. The worker's memory is not the server's and is left out.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from core.units import MIB
from tests.benchmarks.figure import Figure, machine_in_words, report
from tests.browser.the_app import ARGUMENTS, App, chromium_path, running_app

STARTS = 5
VISITORS = 10
CHANGES = 5
READY_MS = 180_000


def measure() -> list[Figure]:
    """Start the app a few times, then fill one with visitors."""
    with tempfile.TemporaryDirectory() as folder:
        starts = [start_s(Path(folder)) for _ in range(STARTS)]
        memory_bytes, with_torch = crowded(Path(folder))
    load = psutil.getloadavg()[0] if hasattr(psutil, "getloadavg") else float("nan")
    conditions = f"{machine_in_words()}, load {load:.1f}"
    loaded = "IS LOADED" if with_torch else "not loaded"
    return [
        Figure(
            "server: process start to healthy",
            statistics.median(starts),
            "s",
            "below 1",
            f"median of {STARTS}, {min(starts):.2f} to {max(starts):.2f}; {conditions}",
        ),
        Figure(
            f"server: resident memory with {VISITORS} visitors",
            memory_bytes / MIB if memory_bytes else None,
            "MiB",
            "below 200, torch not loaded",
            f"torch {loaded} in the server; {CHANGES} changes each; {conditions}",
        ),
    ]


def start_s(folder: Path) -> float:
    with running_app(folder) as app:
        return app.healthy_after_s


def crowded(folder: Path) -> tuple[int, bool]:
    """Resident bytes of the server, and whether torch's library is mapped into it."""
    path = chromium_path()
    if path is None:
        return 0, False
    with running_app(folder) as app, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        pages = [visitor(browser, app) for _ in range(VISITORS)]
        for page in pages * CHANGES:
            page.get_by_role("slider", name="New tokens, at most").press("ArrowRight")
            page.wait_for_timeout(100)
        server = psutil.Process(app.process.pid)
        mapped = [entry.path for entry in server.memory_maps()] if hasattr(server, "memory_maps") else []
        found = server.memory_info().rss, any("libtorch" in name for name in mapped)
        browser.close()
    return found


def visitor(browser: Browser, app: App) -> Page:
    page = browser.new_context().new_page()
    page.goto(app.address + "/lab")
    page.locator("[data-state]:not([data-state=starting])").wait_for(timeout=READY_MS)
    return page


if __name__ == "__main__":
    report(measure)
