"""The lab in a real browser with the real worker: what only a browser can show."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.lab.record import loads
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

MEASURED = "[data-state=measured], [data-state=noisy]"
PATIENCE_MS = 60_000
#: Without a cache and at full length: still running when everything else is done.
LONG_RUN = "?lab_cache=none&lab_tokens=512"


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def answer(page: Page) -> Locator:
    return page.get_by_role("log", name="Answer")


def state(page: Page, *states: str) -> Locator:
    return page.locator(", ".join(f"[data-state={name}]" for name in states))


def overflow(page: Page) -> int:
    return int(
        page.evaluate(
            "Math.max(...[document.documentElement, document.querySelector('[data-testid=stMain]')]"
            ".map((element) => element.scrollWidth - element.clientWidth))"
        )
    )


def wait_for_text(page: Page) -> str:
    """The first words of the running model."""
    expect(answer(page)).not_to_have_text("The answer appears here.", timeout=PATIENCE_MS)
    return answer(page).inner_text()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_follows_the_theme(ready_visit: Visit, scheme: str, width: int) -> None:
    page = ready_visit(scheme=scheme, width=width)
    assert overflow(page) <= 0
    pictures = page.locator(".picture")
    expect(pictures).to_have_count(2)
    for picture in pictures.all():
        expect(picture).to_have_attribute("data-mode", scheme)
        expect(picture).to_have_attribute("aria-label", re.compile(r"^Predicted .+"))
    title = page.get_by_role("heading", level=1)
    expect(title).to_be_in_viewport()
    expect(page.get_by_label("Prompt", exact=True)).to_be_in_viewport()


def test_a_run_streams_and_stands_beside_its_prediction(ready_visit: Visit, tmp_path: Path) -> None:
    page = ready_visit("?lab_tokens=24")
    assert page.get_by_text("not yet", exact=True).count() == 5
    press(page, "Run")
    first = wait_for_text(page)
    expect(page.locator(MEASURED)).to_be_visible(timeout=PATIENCE_MS)
    assert len(answer(page).inner_text()) >= len(first)
    assert page.get_by_text("not yet", exact=True).count() == 0
    with page.expect_download() as download:
        press(page, "Save this run")
    saved = tmp_path / "run.json"
    download.value.save_as(saved)
    record = loads(saved.read_bytes())
    assert 1 < record.output_tokens <= 24
    assert record.measured.operators_s["decode"]
    loaded_elsewhere(ready_visit(), saved)


def loaded_elsewhere(page: Page, saved: Path) -> None:
    page.get_by_text("Load a saved run", exact=True).click()
    page.locator("input[type=file]").set_input_files(saved)
    expect(state(page, "elsewhere")).to_be_visible(timeout=PATIENCE_MS)


def test_the_keyboard_alone_runs_and_cancels(ready_visit: Visit) -> None:
    page = ready_visit(LONG_RUN)
    page.get_by_label("Prompt", exact=True).focus()
    page.keyboard.type(" And why at night?")
    tab_to(page, "Run")
    page.keyboard.press("Enter")
    wait_for_text(page)
    tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    expect(state(page, "failed")).to_contain_text("You cancelled this job.", timeout=PATIENCE_MS)
    assert page.get_by_label("Prompt", exact=True).input_value().endswith(" And why at night?")


def tab_to(page: Page, name: str) -> None:
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText")[-len(name) :] == name:
            return
    pytest.fail(f"30 tabs do not reach {name}.")


def test_a_reload_finds_the_run_again(ready_visit: Visit) -> None:
    page = ready_visit(LONG_RUN)
    page.get_by_label("Prompt", exact=True).fill("Tell me about bees.")
    press(page, "Run")
    before = wait_for_text(page)
    page.reload()
    expect(state(page, "measuring")).to_be_visible(timeout=PATIENCE_MS)
    assert answer(page).inner_text().startswith(before[:20])
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("Tell me about bees.")
    press(page, "Cancel")
    expect(state(page, "failed")).to_be_visible(timeout=PATIENCE_MS)


def test_a_closed_tab_makes_room_for_the_next_visitor_who_saw_nothing_of_it(ready_visit: Visit) -> None:
    first, second = ready_visit(LONG_RUN), ready_visit("?lab_tokens=8")
    press(first, "Run")
    wait_for_text(first)
    press(second, "Run")
    expect(state(second, "queued")).to_contain_text("1 job is ahead of you", timeout=PATIENCE_MS)
    expect(answer(second)).to_have_text("The answer appears here.")
    first.close()
    expect(second.locator(MEASURED)).to_be_visible(timeout=PATIENCE_MS)


def test_a_control_changes_the_link_and_the_link_restores_it(ready_visit: Visit) -> None:
    page = ready_visit()
    page.get_by_role("slider", name="New tokens, at most").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**lab_tokens=65")
    press(page, "Link")
    link = page.locator("code", has_text="lab_tokens=65").inner_text()
    assert link == page.url
    page.reload()
    expect(page.get_by_role("slider", name="New tokens, at most")).to_have_value("65")


# Many requests

SMALL_TRACE = "?part=many&serve_requests=3&serve_prompt=6&serve_answer=4"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_part_on_many_requests_fits_and_follows_the_theme(visit: Visit, scheme: str, width: int) -> None:
    page = visit(SMALL_TRACE, scheme=scheme, width=width)
    pictures = page.locator(".picture")
    expect(pictures).to_have_count(6, timeout=PATIENCE_MS)
    for picture in pictures.all():
        expect(picture).to_have_attribute("data-mode", scheme)
        expect(picture).to_have_attribute("aria-label", re.compile(r"simulated"))
    assert overflow(page) <= 0


def test_a_trace_is_served_compared_saved_and_loaded(
    ready_visit: Visit, visit: Visit, tmp_path: Path
) -> None:
    page = ready_visit(SMALL_TRACE.replace("part=many&", ""))  # calibrated by now
    page.get_by_role("radio", name="Many requests").click()
    page.wait_for_url("**part=many**")
    press(page, "Run")
    expect(page.locator(MEASURED)).to_be_visible(timeout=PATIENCE_MS)
    equal = page.get_by_text(re.compile("3 of 3 requests have the same tokens"))
    expect(equal).to_be_visible()
    expect(page.get_by_text("not yet", exact=True)).to_have_count(0)
    with page.expect_download() as download:
        press(page, "Save this record")
    saved = tmp_path / "served.json"
    download.value.save_as(saved)
    other = visit("?part=many")
    other.get_by_text("Load a saved record", exact=True).click()
    other.locator("input[type=file]").set_input_files(saved)
    expect(state(other, "elsewhere")).to_be_visible(timeout=PATIENCE_MS)
    expect(other.get_by_text(re.compile("3 of 3 requests have the same tokens"))).to_be_visible()
