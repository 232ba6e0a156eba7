"""What a visitor waits for: the first word after Run on a warm worker, and a control's effect.

All times are taken in the page itself, from the event to the changed document, while a second
visitor has the page open.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.figure import Figure, machine_in_words, report
from tests.browser.the_app import ARGUMENTS, chromium_path, running_app

RUNS = 5
CHANGES = 30
READY_MS = 180_000


def measure() -> list[Figure]:
    """Time both in one browser."""
    path = chromium_path()
    if path is None:
        return [Figure("page: first token after Run", None, "s", "below 1", "no Chromium here")]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_app(Path(folder)) as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page, _other = visitor(browser, app.address), visitor(browser, app.address)
        first_s = [first_token_s(page, run) for run in range(RUNS)]
        changes_ms = [change_ms(page) for _ in range(CHANGES)]
        browser.close()
    load = psutil.getloadavg()[0] if hasattr(psutil, "getloadavg") else float("nan")
    conditions = f"{machine_in_words()}, load {load:.1f}, browser and server on the same cores"
    return [
        Figure(
            "page: first token after Run, warm worker",
            statistics.median(first_s),
            "s",
            "below 1",
            f"median of {RUNS}, {min(first_s):.2f} to {max(first_s):.2f}; {conditions}",
        ),
        Figure(
            "page: key press on a slider to the new prediction",
            statistics.median(changes_ms),
            "ms",
            "below 120",
            f"median of {CHANGES}, p90 {sorted(changes_ms)[int(CHANGES * 0.9)]:.0f}, a second visitor; "
            f"{conditions}",
        ),
    ]


def visitor(browser: Browser, address: str) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(READY_MS)  # a loaded host calibrates more than once
    page.goto(address + "/lab?lab_tokens=32")
    page.locator("[data-state]:not([data-state=starting])").wait_for()
    page.get_by_text("Time per token over the answer").wait_for()
    return page


def first_token_s(page: Page, run: int) -> float:
    """From the click on Run to the first letters in the answer box; each run has a prompt of its own."""
    page.get_by_label("Prompt", exact=True).fill(f"Tell me {run + 2} things about the sea.")
    page.get_by_label("Prompt", exact=True).blur()
    # The answer to the prompt before must be gone, or its letters would be taken for the new ones.
    page.locator("[role=log]", has_text="appears here").wait_for()
    page.wait_for_timeout(1500)
    page.evaluate(
        "() => { window.answered = new Promise((resolve, reject) => {"
        "setTimeout(() => reject(new Error('No answer within 60 s.')), 60000);"
        "document.querySelector('.st-key-lab_run button').addEventListener('click', () => {"
        "const start = performance.now(); const look = () => {"
        "const text = document.querySelector('[role=log]')?.innerText ?? '';"
        "if (text && !text.includes('appears here')) resolve(performance.now() - start);"
        "else requestAnimationFrame(look); }; look(); }, { once: true }); }); }"
    )
    page.get_by_role("button", name="Run", exact=True).click()
    waited_ms = float(page.evaluate("window.answered"))
    page.locator("[data-state=measured], [data-state=noisy]").wait_for()
    return waited_ms / 1000


def change_ms(page: Page) -> float:
    """From a key press on the slider to the new end of the picture's axis."""
    slider = page.get_by_role("slider", name="New tokens, at most")
    slider.focus()
    page.wait_for_timeout(300)
    page.evaluate(
        "() => { window.changed = new Promise((resolve, reject) => {"
        "setTimeout(() => reject(new Error('No change within 30 s.')), 30000);"
        "const roots = () => [...document.querySelectorAll('*')].filter((e) => e.shadowRoot);"
        "const picture = () => roots().map((e) => e.shadowRoot.querySelector('.picture'))"
        ".find((p) => p && p.innerText.includes('token of the answer'));"
        "const before = picture().innerHTML;"
        "document.addEventListener('keydown', () => { const start = performance.now();"
        "const look = () => { const now = picture();"
        "if (now && now.innerHTML !== before) resolve(performance.now() - start);"
        "else requestAnimationFrame(look); }; look(); }, { once: true, capture: true }); }); }"
    )
    page.keyboard.press("ArrowRight")
    return float(page.evaluate("window.changed"))


if __name__ == "__main__":
    report(measure)
