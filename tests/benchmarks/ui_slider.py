"""What a visitor waits for: a slider's effect on the planner and on two lessons, and a first page.

Times are taken in the page itself, from the key press to the changed pictures, while a second visitor
has the page open. No picture of these pages needs a chart library.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.figure import Figure, machine_in_words, report
from tests.browser.the_app import ARGUMENTS, chromium_path, running_app

CHANGES = 30
LOADS = 5
#: A loaded host may take its time to draw a page.
PATIENCE_MS = 60_000


@dataclass(frozen=True)
class Place:
    """A page: its address, its slider, and how many pictures the slider changes."""

    name: str
    slider: str
    pictures: int

    @property
    def is_lesson(self) -> bool:
        return self.name != "planner"


PLANNER = Place("planner", "Batch", 3)
PLACES = (
    PLANNER,
    Place("prefill_and_decode", "Prompt tokens", 2),
    Place("kv_cache", "Prompt tokens", 2),
)

#: Resolves with the milliseconds from the next key press until every picture has changed, at the next frame.
#: Watched by the browser itself: to look at every picture in every frame would take time from what is timed.
WATCH = """
() => {
  const pictures = [...document.querySelectorAll("*")].filter((e) => e.shadowRoot)
    .map((e) => e.shadowRoot.querySelector(".picture")).filter(Boolean);
  window.changed = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("The pictures did not change within 30 s.")), 30000);
    document.addEventListener("keydown", () => {
      const start = performance.now();
      const left = new Set(pictures);
      for (const picture of pictures) {
        const before = picture.innerHTML;
        const watcher = new MutationObserver(() => {
          if (picture.innerHTML === before) return;
          watcher.disconnect();
          left.delete(picture);
          if (!left.size) requestAnimationFrame(() => resolve(performance.now() - start));
        });
        watcher.observe(picture, { childList: true, subtree: true, characterData: true, attributes: true });
      }
    }, { once: true, capture: true });
  });
}
"""


def measure() -> list[Figure]:
    """Time everything in one browser."""
    path = chromium_path()
    if path is None:
        return [Figure("planner: slider to changed pictures", None, "ms", "below 120", "no Chromium here")]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_app(Path(folder)) as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        visitor(browser, app.address, PLANNER)  # the server's first visitor pays for its imports
        loads_s = [visitor(browser, app.address, PLANNER)[1] for _ in range(LOADS)]
        changes_ms = {place.name: changes(browser, app.address, place) for place in PLACES}
        browser.close()
    load = psutil.getloadavg()[0] if hasattr(psutil, "getloadavg") else float("nan")
    conditions = f"{machine_in_words()}, load {load:.1f}, browser and server on the same cores"
    first_page = Figure(
        "planner: first page of a fresh browser",
        statistics.median(loads_s),
        "s",
        "below 2.2",
        f"median of {LOADS}, {min(loads_s):.2f} to {max(loads_s):.2f}, to the last picture; {conditions}",
    )
    return [*(_slider(place, changes_ms[place.name], conditions) for place in PLACES), first_page]


def _slider(place: Place, times_ms: list[float], conditions: str) -> Figure:
    return Figure(
        f"{place.name}: key press on a slider to all pictures changed",
        statistics.median(times_ms),
        "ms",
        "below 120",
        f"median of {CHANGES}, p90 {sorted(times_ms)[int(CHANGES * 0.9)]:.0f}, {place.pictures} SVG, "
        f"a second visitor's page open; {conditions}",
    )


def changes(browser: Browser, address: str, place: Place) -> list[float]:
    """The times of all changes on one page, with another visitor's open."""
    other, _ = visitor(browser, address, place)
    page, _ = visitor(browser, address, place)
    times_ms = [change_ms(page, place, number) for number in range(CHANGES)]
    for each in (page, other):
        each.context.close()
    return times_ms


def visitor(browser: Browser, address: str, place: Place) -> tuple[Page, float]:
    """A new visitor with an empty cache, and the seconds from the address to the last picture."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/{place.name if place.is_lesson else ''}", wait_until="commit")
    if place.is_lesson:
        page.get_by_role("button", name="Show me", exact=True).click()
    page.locator(".picture svg").first.wait_for()
    page.locator(".picture").nth(place.pictures - 1).wait_for()
    loaded_s = float(page.evaluate("performance.now()")) / 1000
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    return page, loaded_s


def change_ms(page: Page, place: Place, number: int) -> float:
    """One step of the slider, there and back."""
    page.get_by_role("slider", name=place.slider).focus()
    page.wait_for_timeout(400)
    page.evaluate(WATCH)
    page.keyboard.press("ArrowRight" if number % 8 < 4 else "ArrowLeft")
    return float(page.evaluate("window.changed"))


if __name__ == "__main__":
    report(measure)
