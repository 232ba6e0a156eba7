"""Boxes of a picture can be clicked, and the keyboard has its own way to the same."""

import re

import pytest
from playwright.sync_api import Page, expect

from core.lesson.lesson_file import lessons
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

PATIENCE_MS = 60_000


def open_lesson(visit: Visit, stem: str, query: str = "") -> Page:
    page = visit(query, page_name=stem)
    expect(page.get_by_role("heading", level=1)).to_have_text(lessons()[stem].question, timeout=PATIENCE_MS)
    page.locator("[data-pick]").first.wait_for()
    return page


@pytest.mark.parametrize(
    ("stem", "box", "setting", "says"),
    [
        ("one_token", "down", "set_operator=down", "Opened: MLP down"),
        ("inside_a_gpu", "l2_cache", "set_level=l2_cache", "From the units outwards"),
    ],
)
def test_a_click_on_a_box_opens_it_and_stands_in_the_link(
    visit: Visit, stem: str, box: str, setting: str, says: str
) -> None:
    page = open_lesson(visit, stem)
    page.locator(f'[data-pick="{box}"]').first.click()
    page.wait_for_url(re.compile(re.escape(setting)))
    expect(page.locator(".picture").first).to_have_attribute("aria-label", re.compile(says))


def test_what_a_link_opens_is_open(visit: Visit) -> None:
    page = open_lesson(visit, "one_token", "?set_operator=attention")
    expect(page.locator(".picture").first).to_have_attribute("aria-label", re.compile("Opened: attention"))
    expect(page.get_by_role("combobox", name="Open")).to_be_visible()


def test_a_box_that_the_model_lacks_gives_way_to_the_first(visit: Visit) -> None:
    page = open_lesson(visit, "one_token", "?set_operator=no_such_box")
    expect(page.locator(".picture").first).to_have_attribute("aria-label", re.compile("Opened: embedding"))
