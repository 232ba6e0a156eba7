"""What a visitor of the planner waits for while another visitor's sweep runs on the same machine.

The same slider is timed twice in one browser: while the worker has nothing to do, and while it measures.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.figure import Figure, machine_in_words, report
from tests.benchmarks.ui_slider import PATIENCE_MS, PLANNER, change_ms, visitor
from tests.browser.the_app import ARGUMENTS, chromium_path, running_app

CHANGES = 40
NAME = "planner: key press to all pictures changed, another's sweep under way, 95th percentile"
TARGET = "below 250"
#: Loading, packing and calibrating on a slow and busy machine.
READY_MS = 300_000
AT_REST = "[data-state=nothing], [data-state=measured], [data-state=noisy]"
BUSY = "[data-state=measuring]"


def measure() -> list[Figure]:
    """Time the slider at rest, then beside a sweep that is started again whenever it ends."""
    path = chromium_path()
    if path is None:
        return [Figure(NAME, None, "ms", TARGET, "no Chromium here")]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_app(Path(folder)) as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        sweeping = sweeper(browser, app.address)
        page, _ = visitor(browser, app.address, PLANNER)
        quiet_ms = [change_ms(page, PLANNER, number) for number in range(CHANGES)]
        run(sweeping)
        busy_ms = [change for number in range(CHANGES) if (change := beside(page, sweeping, number))]
        browser.close()
    load = psutil.getloadavg()[0] if hasattr(psutil, "getloadavg") else float("nan")
    return [
        Figure(
            NAME,
            percentile_95(busy_ms),
            "ms",
            TARGET,
            f"{len(busy_ms)} changes, median {statistics.median(busy_ms):.0f}; with nothing to measure "
            f"p95 {percentile_95(quiet_ms):.0f}, median {statistics.median(quiet_ms):.0f}; "
            f"{machine_in_words()}, load {load:.1f}, browser, server and worker on the same cores",
        )
    ]


def sweeper(browser: Browser, address: str) -> Page:
    """A visitor at the lab's sweep, once the machine is calibrated."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/lab?part=sweep", wait_until="commit")
    page.locator(AT_REST).wait_for(timeout=READY_MS)
    return page


def run(page: Page) -> None:
    """Start the sweep, or start it again, and wait until it measures."""
    page.get_by_role("button", name="Run").first.click()
    page.locator(BUSY).wait_for(timeout=READY_MS)


def beside(page: Page, sweeping: Page, number: int) -> float | None:
    """A change during which the sweep ran from beginning to end; None where the sweep ended meanwhile."""
    if not sweeping.locator(BUSY).count():
        run(sweeping)
    change = change_ms(page, PLANNER, number)
    return change if sweeping.locator(BUSY).count() else None


def percentile_95(times_ms: list[float]) -> float:
    return sorted(times_ms)[int(len(times_ms) * 0.95)]


if __name__ == "__main__":
    report(measure)
