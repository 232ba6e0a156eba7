"""The planner in a real browser: links, Back, other pages, two tabs, keys, themes, widths."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.test_accessibility import settled
from tests.browser.test_lab import overflow

pytestmark = pytest.mark.browser


def open_planner(visit: Visit, query: str = "", **kwargs: object) -> Page:
    page = visit(query, page_name="", **kwargs)
    page.locator(".picture").nth(2).wait_for(timeout=60_000)
    return settled(page)


def line(page: Page) -> Locator:
    return page.get_by_text(re.compile(r"weights, .+ KV · batch"))


def slide(page: Page, name: str, key: str = "ArrowRight") -> None:
    page.get_by_role("slider", name=name).press(key)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_and_follows_the_theme(visit: Visit, scheme: str, width: int) -> None:
    page = open_planner(visit, scheme=scheme, width=width)
    assert overflow(page) <= 0
    for picture in page.locator(".picture").all():
        expect(picture).to_have_attribute("data-mode", scheme)
    for name in ("Memory", "TTFT", "Tokens/s", "Users"):
        expect(page.get_by_role("button", name=name).first).to_be_in_viewport()


def test_a_control_writes_the_address_and_back_undoes_it(visit: Visit) -> None:
    page = open_planner(visit)
    slide(page, "Batch")
    page.wait_for_url("**/?v=1&b=2")
    slide(page, "Batch")
    page.wait_for_url("**/?v=1&b=4")
    page.go_back()
    expect(line(page)).to_contain_text("batch 2 ")
    page.go_back()
    expect(line(page)).to_contain_text("batch 1 ")
    page.go_forward()
    expect(line(page)).to_contain_text("batch 2 ")


def test_the_scenario_travels_and_back_finds_every_page_as_it_was(visit: Visit) -> None:
    page = open_planner(visit)
    slide(page, "Batch")
    page.wait_for_url("**/?v=1&b=2")
    page.get_by_role("link", name="Engine lab").click()
    page.get_by_label("Prompt", exact=True).wait_for()
    page.get_by_role("link", name="Planner").click()
    expect(line(page)).to_contain_text("batch 2 ")
    page.wait_for_url("**/?v=1&b=2")


def test_coming_to_a_page_is_one_step_of_the_history(visit: Visit) -> None:
    page = open_planner(visit, "?v=1&b=8")
    steps = page.evaluate("history.length")
    page.get_by_role("link", name="KV cache").click()
    page.wait_for_url("**/kv_cache?v=1&b=8")
    assert page.evaluate("history.length") == steps + 1
    page.go_back()
    expect(line(page)).to_contain_text("batch 8 ")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Will it fit")


def test_the_planner_has_a_name_of_its_own_too(visit: Visit) -> None:
    page = visit("?v=1&b=8", page_name="planner")
    expect(line(page)).to_contain_text("batch 8 ", timeout=60_000)
    slide(page, "Batch")
    page.wait_for_url("**/planner?v=1&b=16")
    expect(line(page)).to_contain_text("batch 16 ")
    expect(page.get_by_text("Page not found")).to_have_count(0)
    expect(page.get_by_role("link", name="Planner")).to_have_count(1)


def test_a_lever_is_applied_by_the_keyboard(visit: Visit) -> None:
    page = open_planner(visit)
    page.get_by_role("button", name="Apply: int4 weights").focus()
    page.keyboard.press("Enter")
    expect(line(page)).to_contain_text("int4 weights")
    page.wait_for_url("**/?v=1&w=int4")


def test_a_link_restores_everything_after_a_reload(visit: Visit) -> None:
    page = open_planner(visit, "?v=1&m=qwen3-8b&a=a100-sxm-80gb&w=int4&b=9&i=1000&o=50")
    shown = "Qwen3 8B · 1 × NVIDIA A100 SXM4 80GB · int4 weights, bf16 KV · batch 9 · 1,000 in, 50 out"
    expect(line(page)).to_have_text(shown)
    page.reload()
    expect(line(page)).to_have_text(shown)


def test_the_link_to_copy_opens_the_same_scenario(visit: Visit) -> None:
    page = open_planner(visit, "?b=9&v=1")
    page.get_by_role("button", name="Link").click()
    link = page.locator("code", has_text="b=9").inner_text()
    other = open_planner(visit, "?" + link.partition("?")[2])
    expect(line(other)).to_contain_text("batch 9 ")


def test_two_tabs_hold_two_scenarios(visit: Visit) -> None:
    first, second = open_planner(visit, "?v=1&b=8"), open_planner(visit, "?v=1&b=2")
    slide(first, "Batch")
    expect(line(first)).to_contain_text("batch 16 ")
    slide(second, "Batch")
    expect(line(second)).to_contain_text("batch 4 ")
    expect(line(first)).to_contain_text("batch 16 ")


def test_hostile_values_are_sentences_and_run_nothing(visit: Visit) -> None:
    page = open_planner(visit, "?v=1&m=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&b=0&i=-5")
    expect(page.get_by_role("alert")).to_have_count(3)
    expect(page.get_by_role("alert").first).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("img[src=x]").count() == 0


def test_the_keyboard_opens_a_number_and_closes_it(visit: Visit) -> None:
    page = open_planner(visit)
    tile = page.get_by_role("button", name="TPOT")
    tile.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("FLOP rate").first).to_be_visible()
    expect(tile).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")
    expect(tile).to_have_attribute("aria-expanded", "false")


def test_typing_in_the_bar_keeps_the_focus_and_the_bar_open(visit: Visit) -> None:
    page = open_planner(visit)
    page.get_by_role("button", name="Change").click()
    field = page.get_by_role("spinbutton", name="Input tokens")
    field.fill("3000")
    field.press("Enter")
    expect(line(page)).to_contain_text("3,000 in")
    expect(field).to_be_focused()
    page.wait_for_url("**i=3000**")


def test_a_number_leads_to_its_lesson_and_the_scenario_comes_along(visit: Visit) -> None:
    page = open_planner(visit, "?v=1&b=8")
    page.get_by_role("button", name=re.compile("^Users")).click()
    page.get_by_role("link", name=re.compile("Learn why")).click()
    page.wait_for_url("**/kv_cache?**b=8**")


def test_a_config_of_five_megabytes_is_refused_in_a_sentence(visit: Visit) -> None:
    page = open_planner(visit)
    page.get_by_role("button", name="Change").click()
    page.get_by_text("Own model", exact=True).click()
    page.locator("input[type=file]").set_input_files(
        {"name": "config.json", "mimeType": "application/json", "buffer": b" " * 5_000_000}
    )
    expect(page.get_by_text(re.compile("1(.0)?MB or smaller"))).to_be_visible()
