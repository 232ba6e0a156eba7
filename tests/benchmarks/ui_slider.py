"""What a visitor of the planner waits for: a slider's effect, and the first page of a fresh browser.

Times are taken in the page itself, from the key press to the changed pictures, while a second visitor
has the page open. No picture of the planner needs a chart library.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.figure import Figure, machine_in_words, report
from tests.browser.the_app import ARGUMENTS, chromium_path, running_app

CHANGES = 30
LOADS = 5
PICTURES = 3

#: Resolves with the milliseconds from the next key press until every picture has changed.
WATCH = """
() => {
  const pictures = () => [...document.querySelectorAll("*")].filter((e) => e.shadowRoot)
    .map((e) => e.shadowRoot.querySelector(".picture")).filter(Boolean).map((p) => p.innerHTML);
  const before = pictures();
  window.changed = new Promise((resolve) => {
    document.addEventListener("keydown", () => {
      const start = performance.now();
      const look = () => {
        const now = pictures();
        if (now.length === before.length && now.every((svg, i) => svg !== before[i]))
          resolve(performance.now() - start);
        else requestAnimationFrame(look);
      };
      look();
    }, { once: true, capture: true });
  });
}
"""


def measure() -> list[Figure]:
    """Time both in one browser."""
    path = chromium_path()
    if path is None:
        return [Figure("planner: slider to changed pictures", None, "ms", "below 120", "no Chromium here")]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_app(Path(folder)) as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        visitor(browser, app.address)  # the server's first visitor pays for its imports
        loads_s = [visitor(browser, app.address)[1] for _ in range(LOADS)]
        page, _ = visitor(browser, app.address)
        changes_ms = [change_ms(page, number) for number in range(CHANGES)]
        browser.close()
    load = psutil.getloadavg()[0] if hasattr(psutil, "getloadavg") else float("nan")
    conditions = f"{machine_in_words()}, load {load:.1f}, browser and server on the same cores"
    return [
        Figure(
            "planner: key press on a slider to all pictures changed",
            statistics.median(changes_ms),
            "ms",
            "below 120",
            f"median of {CHANGES}, p90 {sorted(changes_ms)[int(CHANGES * 0.9)]:.0f}, {PICTURES} SVG, "
            f"other visitors' pages open; {conditions}",
        ),
        Figure(
            "planner: first page of a fresh browser",
            statistics.median(loads_s),
            "s",
            "below 2.2",
            f"median of {LOADS}, {min(loads_s):.2f} to {max(loads_s):.2f}, to the last picture; {conditions}",
        ),
    ]


def visitor(browser: Browser, address: str) -> tuple[Page, float]:
    """A new visitor with an empty cache, and the seconds from the address to the last picture."""
    page = browser.new_context().new_page()
    page.goto(address, wait_until="commit")
    page.locator(".picture svg.flat").wait_for()
    page.locator(".picture").nth(PICTURES - 1).wait_for()
    loaded_s = float(page.evaluate("performance.now()")) / 1000
    page.get_by_text("Compare two scenarios").wait_for()
    return page, loaded_s


def change_ms(page: Page, number: int) -> float:
    """One step of the batch slider, there and back."""
    page.get_by_role("slider", name="Batch").focus()
    page.wait_for_timeout(400)
    page.evaluate(WATCH)
    page.keyboard.press("ArrowRight" if number % 8 < 4 else "ArrowLeft")
    return float(page.evaluate("window.changed"))


if __name__ == "__main__":
    report(measure)
