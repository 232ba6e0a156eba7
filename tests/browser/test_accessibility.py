"""No page has a serious or critical finding of axe-core, in light or dark, closed or unfolded."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.axe import violations
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("*.py"))
PATIENCE_MS = 60_000
#: The text of the app is lighter than the middle, as it is on a dark page.
IS_DARK = """() => {
  const colour = getComputedStyle(document.querySelector("[data-testid=stApp]")).color;
  const [red, green, blue] = colour.match(/[0-9.]+/g).map(Number);
  return red + green + blue > 384;
}"""


def settled(page: Page) -> Page:
    """The page, once its last script run has ended."""
    page.get_by_role("heading", level=1).wait_for(timeout=PATIENCE_MS)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=PATIENCE_MS)
    page.wait_for_timeout(500)
    return page


def address_of(name: str) -> str:
    return "" if name == "planner" else name


def in_the_dark(page: Page) -> Page:
    """The same page, once it has followed the system's switch to dark."""
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(IS_DARK)
    return settled(page)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_used_by_everybody(visit: Visit, name: str) -> None:
    page = settled(visit(page_name=address_of(name)))
    assert violations(page) == []
    assert violations(in_the_dark(page)) == []


def test_the_open_planner_can_be_used_by_everybody(visit: Visit) -> None:
    page = settled(visit("?b=0", page_name=""))
    page.get_by_role("button", name="TTFT").click()
    page.get_by_text("pass cost").first.wait_for()
    page.get_by_role("button", name="Change").click()
    page.get_by_role("combobox", name="Weight format").wait_for()
    assert violations(settled(page)) == []
    assert violations(in_the_dark(page)) == []
    page.locator("label", has_text="Print view").click()
    page.get_by_text("largest n with").first.wait_for()
    assert violations(settled(page)) == []
