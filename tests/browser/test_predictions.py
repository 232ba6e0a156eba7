"""The page of predictions in a browser: a click on a mark, a link, a phone, and what keeps people out."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import Visit
from tests.browser.test_accessibility import settled

pytestmark = pytest.mark.browser

PATIENCE_MS = 60_000
RECORD = "one_token-run.json"


def opened(visit: Visit, query: str = "", **kwargs: object) -> Page:
    page = visit(query, page_name="predictions", **kwargs)
    page.locator("[data-pick]").first.wait_for(timeout=PATIENCE_MS)
    return page


def test_a_click_on_a_mark_opens_its_arithmetic_and_stands_in_the_link(visit: Visit) -> None:
    page = opened(visit, "?source=github.com/ggml-org/llama.cpp/pull/10238")
    mark = page.locator("[data-pick]")
    expect(mark).to_have_count(1)
    row = str(mark.get_attribute("data-pick"))
    mark.click()
    page.wait_for_url(re.compile(f"row={row}"), timeout=PATIENCE_MS)
    expect(page.get_by_text("matrices of the layers").first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("link", name="Open the source")).to_have_attribute(
        "href", re.compile("pull/10238")
    )


def test_a_button_of_the_list_does_the_same(visit: Visit) -> None:
    page = opened(visit)
    page.get_by_role("button", name=re.compile("^Arithmetic: r")).first.click()
    page.wait_for_url(re.compile("row=r"), timeout=PATIENCE_MS)
    expect(page.get_by_text("Python that gives this number")).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_open_row_and_an_open_record_can_be_used_by_everybody(visit: Visit, scheme: str) -> None:
    page = opened(visit, f"?row=r001&record={RECORD}", scheme=scheme)
    expect(page.get_by_role("link", name="Open the lab with these settings")).to_be_visible(
        timeout=PATIENCE_MS
    )
    assert violations(settled(page)) == []


def test_on_a_phone_nothing_leaves_the_page_sideways(visit: Visit) -> None:
    page = opened(visit, f"?row=r001&record={RECORD}", width=390)
    expect(page.get_by_role("link", name="Open the lab with these settings")).to_be_visible(
        timeout=PATIENCE_MS
    )
    wide = "document.querySelector('[data-testid=stMain]').scrollWidth"
    assert page.evaluate(wide) <= 390
