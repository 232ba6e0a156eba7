"""The real app with its real worker, and the system's Chromium in front of it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, sync_playwright

from tests.browser.the_app import ARGUMENTS, chromium_path, running_app

#: Loading, packing and calibrating on a slow and busy machine.
READY_MS = 300_000

Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path. A developer's machine may lack one; the project's checks may not."""
    found = chromium_path()
    if found is None and os.environ.get("CI") != "true":
        pytest.skip("Browser tests need Chromium, and none is installed: apt-get install chromium.")
    assert found is not None, "The checks need Chromium: apt-get install chromium."
    return found


@pytest.fixture(scope="session")
def address(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app, started once; its log may not hold a stack trace at the end."""
    folder: Path = tmp_path_factory.mktemp("app")
    with running_app(folder) as app:
        yield app.address
    written = (folder / "log").read_text()
    assert "Traceback" not in written, written


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """Open the app as a new visitor. No visit may log an error or call another host."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []
    own = (address, address.replace("http", "ws"), "data:", "blob:")

    def note_request(url: str) -> None:
        if not url.startswith(own):
            complaints.append(f"a request to {url}")

    def note_console(entry: ConsoleMessage) -> None:
        # A page of its own address first asks below it where the server is, and then above.
        probe = str(entry.location.get("url", "")).endswith(("/_stcore/health", "/_stcore/host-config"))
        if entry.type == "error" and not (probe and "404" in entry.text):
            complaints.append(entry.text)

    def open_as_visitor(
        query: str = "", *, page_name: str = "lab", scheme: str = "light", width: int = 1280
    ) -> Page:
        size: ViewportSize = {"width": width, "height": 800}
        context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light", viewport=size)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note_console)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: note_request(request.url))
        page.goto(f"{address}/{page_name}{query}")
        return page

    yield open_as_visitor
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def ready_visit(visit: Visit) -> Visit:
    """Open the app as a new visitor and wait until the computer is calibrated."""

    def open_when_ready(query: str = "", **kwargs: object) -> Page:
        page = visit(query, **kwargs)
        page.locator("[data-state]:not([data-state=starting])").wait_for(timeout=READY_MS)
        page.get_by_text("Time per token over the answer").wait_for()
        return page

    return open_when_ready
