"""The style page shows every element once, in both themes and both widths; its pictures are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from core.ui.state_card import LOOKS
from tests.browser.axe import violations
from tests.browser.test_accessibility import settled
from tests.browser.test_lab import overflow
from tests.browser.the_app import running_app

pytestmark = pytest.mark.browser

PNG = b"\x89PNG"
PICTURES = 6


@pytest.fixture(scope="module")
def style_address(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("style")
    with running_app(folder, "docs/style_page.py") as app:
        yield app.address
    assert "Traceback" not in (folder / "log").read_text()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_element_is_there_and_photographed(
    browser: Browser, style_address: str, tmp_path: Path, scheme: str, width: int
) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 800}
    )
    page = context.new_page()
    page.goto(style_address)
    expect(page.locator(".picture")).to_have_count(PICTURES, timeout=60_000)
    settled(page)
    height = int(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
    page.set_viewport_size({"width": width, "height": min(height, 8000)})
    expect(page.locator("[role=status][data-state]")).to_have_count(len(LOOKS))
    photograph = tmp_path / f"style-{scheme}-{width}.png"
    page.screenshot(path=photograph)
    assert photograph.read_bytes().startswith(PNG)
    assert height > 2000
    assert overflow(page) <= 0
    assert violations(page) == []
    context.close()
