"""A newcomer takes two lessons in a real browser, measures, keeps a notebook, and reloads mid-run."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.lesson.course import course
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.notebook import load
from tests.browser.conftest import READY_MS, Visit

pytestmark = pytest.mark.browser

STEMS = ("prefill_and_decode", "kv_cache")
PATIENCE_MS = 60_000


def open_lesson(visit: Visit, stem: str, query: str = "", **kwargs: object) -> Page:
    """A lesson as a new visitor sees it."""
    page = visit(query, page_name=stem, **kwargs)
    expect(page.get_by_role("heading", level=1)).to_have_text(lessons()[stem].question, timeout=PATIENCE_MS)
    page.locator(".picture svg").first.wait_for()
    return page


def to_page(page: Page, name: str, title: str) -> None:
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def choose(page: Page, text: str) -> None:
    page.get_by_text(text, exact=True).click()


def pictures(page: Page) -> Locator:
    return page.locator(".picture")


def commit(page: Page, sure: str) -> None:
    choose(page, sure)
    button = page.get_by_role("button", name="Commit", exact=True)
    expect(button).to_be_enabled()
    button.click()
    expect(button).to_be_hidden()
    expect(pictures(page)).to_have_count(2)


def answer(page: Page, stem: str, value: float) -> None:
    field = page.get_by_role("textbox", name=re.compile("^Your answer in"))
    field.fill(f"{value:.4g} {lessons()[stem].exercises[0].unit}")
    press(page, "Check")


def right_answer(stem: str, seed: int) -> float:
    lesson = lessons()[stem]
    return draw(lesson, lesson.exercises[0], seed).answer.value


def overflow(page: Page) -> int:
    return int(
        page.evaluate(
            "Math.max(...[document.documentElement, document.querySelector('[data-testid=stMain]')]"
            ".map((element) => element.scrollWidth - element.clientWidth))"
        )
    )


@pytest.fixture(scope="session", autouse=True)
def _known_pages(address: str, browser: object) -> None:
    """Let the server run once from its start page, as a host does before visitors come."""
    expect.set_options(timeout=20_000)  # shared machines are slow at times
    page = browser.new_page()  # type: ignore[attr-defined]
    page.goto(address)
    page.get_by_role("heading", level=1).wait_for(timeout=READY_MS)
    page.close()


@pytest.mark.parametrize("stem", STEMS)
def test_the_first_screen_shows_question_prediction_and_picture(visit: Visit, stem: str) -> None:
    page = open_lesson(visit, stem)
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("heading", name="Your prediction")).to_be_in_viewport(ratio=1)
    expect(pictures(page)).to_have_count(1)
    expect(pictures(page)).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Commit", exact=True)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 390)])
@pytest.mark.parametrize("stem", STEMS)
def test_a_lesson_fits_and_follows_the_theme(visit: Visit, stem: str, scheme: str, width: int) -> None:
    page = open_lesson(visit, stem, scheme=scheme, width=width)
    press(page, "Show me")
    expect(pictures(page)).to_have_count(2)
    for drawn in pictures(page).all():
        expect(drawn).to_have_attribute("data-mode", scheme)
        expect(drawn).to_have_attribute("aria-label", re.compile(r".{40,}"))
    assert overflow(page) <= 0


def test_a_newcomer_completes_both_lessons_and_the_notebook_holds_it_all(
    visit: Visit, tmp_path: Path
) -> None:
    page = open_lesson(visit, "prefill_and_decode", "?seed=3")
    page.get_by_role("slider", name="Your mark").press("ArrowRight")
    expect(page.get_by_text("120 ×")).to_be_visible()
    commit(page, "fairly sure")
    expect(page.get_by_text("You said 120 ×; it is 312 ×.")).to_be_visible()
    expect(pictures(page).nth(1)).to_have_attribute("aria-label", re.compile("You said 120 times"))
    lesson = lessons()["prefill_and_decode"]
    choose(page, lesson.because.options[1].text)
    expect(page.get_by_text("Not this one.")).to_be_visible()
    choose(page, lesson.because.options[0].text)
    expect(page.get_by_text("Yes. The bytes of a pass")).to_be_visible()
    answer(page, "prefill_and_decode", right_answer("prefill_and_decode", 3) / 2)
    expect(page.get_by_text("2:4 sparsity, which a dense model does not have")).to_be_visible()
    answer(page, "prefill_and_decode", right_answer("prefill_and_decode", 3))
    expect(page.get_by_text(re.compile("^Right: "))).to_be_visible()

    following = course().neighbours("prefill_and_decode").next
    assert following is not None
    expect(page.get_by_role("link", name=f"Next: {following.number} {following.title}")).to_be_visible()
    to_page(page, "KV cache", lessons()["kv_cache"].question)
    choose(page, "linearly")
    commit(page, "certain")
    expect(page.get_by_text("Your choice was right.")).to_be_visible()
    choose(page, lessons()["kv_cache"].because.options[0].text)
    expect(page.get_by_text("Yes. The causal mask")).to_be_visible()
    answer(page, "kv_cache", 8 * right_answer("kv_cache", 0))
    expect(page.get_by_text(re.compile("query heads. Only the"))).to_be_visible()
    answer(page, "kv_cache", right_answer("kv_cache", 0))
    expect(page.get_by_text(re.compile("^Right: "))).to_be_visible()
    saved_and_loaded(page, visit, tmp_path)


def saved_and_loaded(page: Page, visit: Visit, folder: Path) -> None:
    to_page(page, "Course map", "Where do you want to go next?")
    expect(page.get_by_text(f"2 of {len(lessons())} pages done")).to_be_visible()
    to_page(page, "Notebook", "What have you predicted, and how close did you come?")
    expect(page.get_by_text("loses what is not saved")).to_be_visible()
    with page.expect_download() as download:
        press(page, "Save the notebook")
    expect(page.get_by_text("Everything in it is in a file.")).to_be_visible()
    saved = folder / "notebook.json"
    download.value.save_as(saved)
    kept = load(saved.read_bytes())
    assert [made.value or made.choice for made in kept.predictions] == [120.0, "linear"]
    assert [chosen.right for chosen in kept.chosen] == [False, True, True]
    assert [attempt.correct for attempt in kept.attempts] == [False, True, False, True]

    other = visit(page_name="notebook")
    other.get_by_text("Load a saved notebook").click()
    other.locator("input[type=file]").set_input_files(saved)
    press(other, "Open it")
    expect(other.get_by_text("120 ×").first).to_be_visible()
    to_page(other, "KV cache", lessons()["kv_cache"].question)
    expect(other.get_by_text("Your choice was right.")).to_be_visible()
    expect(pictures(other)).to_have_count(2)


def test_the_keyboard_alone_commits_a_prediction_and_answers(visit: Visit) -> None:
    page = open_lesson(visit, "kv_cache")
    page.get_by_role("radio", name="with the square").focus()
    page.keyboard.press("Space")
    page.get_by_role("radio", name="a guess").focus()
    page.keyboard.press("Space")
    button = page.get_by_role("button", name="Commit", exact=True)
    expect(button).to_be_enabled()
    button.focus()
    page.keyboard.press("Enter")
    expect(pictures(page)).to_have_count(2)
    page.get_by_role("textbox", name=re.compile("^Your answer in")).focus()
    page.keyboard.type(f"{right_answer('kv_cache', 0):.4g}")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^Right: "))).to_be_visible()


def test_a_link_restores_scenario_setting_and_seed_and_says_repairs(visit: Visit) -> None:
    page = open_lesson(visit, "kv_cache", "?v=1&b=4&m=llama-2-70b&set_cache=0&seed=7&evil=%3Cscript%3E")
    expect(page.get_by_role("switch", name="Keep keys and values")).not_to_be_checked()
    expect(page.get_by_text(re.compile("^Llama 2 70B.* batch 4"))).to_be_visible()
    expect(page.get_by_text("does not know; it is ignored")).to_be_visible()
    lesson = lessons()["kv_cache"]
    users = draw(lesson, lesson.exercises[0], 7).values["batch"]
    expect(page.get_by_text(re.compile(rf"for {users} users with"))).to_be_visible()


@pytest.mark.timeout(READY_MS // 1000 + 120)
def test_a_lesson_measures_survives_a_reload_and_writes_the_same_text_twice(visit: Visit) -> None:
    page = open_lesson(visit, "kv_cache")
    press(page, "Measure here")
    expect(page.get_by_text("Run 1 of 2: without a cache.")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("[data-state=measuring], [data-state=queued], [data-state=starting]")).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile(r"Run \d of 2"))).to_be_visible(timeout=PATIENCE_MS)
    done = page.locator("[data-state=measured], [data-state=noisy]")
    expect(done).to_be_visible(timeout=READY_MS)
    expect(page.get_by_text("Both runs wrote the same 24 tokens.")).to_be_visible()
    rows = page.get_by_role("table", name="Predicted and measured").locator("tbody tr")
    expect(rows).to_have_count(3)
    factor = rows.nth(2).locator("td").nth(1).inner_text()
    assert float(factor.split()[0]) > 1  # recomputing costs time, whatever the machine
