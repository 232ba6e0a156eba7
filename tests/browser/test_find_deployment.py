"""The page that searches, in a real browser: widths, themes, keys, the address, the way to the planner."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import Visit
from tests.browser.test_accessibility import settled
from tests.browser.test_lab import overflow

pytestmark = pytest.mark.browser


def open_page(visit: Visit, query: str = "", **kwargs: object) -> Page:
    page = visit(query, page_name="find_deployment", **kwargs)
    page.locator(".picture").wait_for(timeout=60_000)
    return settled(page)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_and_follows_the_theme(visit: Visit, scheme: str, width: int) -> None:
    page = open_page(visit, scheme=scheme, width=width)
    assert overflow(page) <= 0
    expect(page.locator(".picture")).to_have_attribute("data-mode", scheme)
    expect(page.get_by_text("candidates do what is asked")).to_be_in_viewport()


def test_the_keyboard_sets_a_limit_and_back_takes_it_back(visit: Visit) -> None:
    page = open_page(visit)
    field = page.get_by_role("spinbutton", name="TPOT at most, ms")
    field.fill("20")
    field.press("Enter")
    page.wait_for_url("**/find_deployment?tpot=20")
    expect(page.locator(".picture")).to_contain_text("at most 20.0 ms")
    expect(field).to_be_focused()
    page.go_back()
    expect(page.locator(".picture")).to_contain_text("at most 50.0 ms")
    expect(field).to_have_value("50")


def test_a_row_leads_to_the_planner_by_the_keyboard(visit: Visit) -> None:
    page = open_page(visit, "?v=1&i=512")
    page.get_by_role("link", name=re.compile("^1 · ")).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Will it fit")
    line = page.get_by_text(re.compile(r"weights, .+ KV · batch"))
    expect(line).to_contain_text("512 in")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Which chips")


def test_nothing_left_is_a_sentence_that_everybody_can_read(visit: Visit) -> None:
    page = settled(visit("?tpot=0.1", page_name="find_deployment"))
    expect(page.get_by_role("alert")).to_contain_text("does what is asked")
    assert violations(page) == []
