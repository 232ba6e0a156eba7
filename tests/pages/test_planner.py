"""The planner's page: what it answers, what it opens, what it offers, and what it admits."""

import pytest
from streamlit.testing.v1 import AppTest

from core.catalog.accelerators import accelerators
from core.catalog.scenario import Scenario
from core.ui.planner import page
from tests.pages.conftest import Open, component_data, settled, tables, words

pytestmark = pytest.mark.page

TILES = ["Memory", "TTFT", "TPOT", "Tokens/s", "Users", "Context"]
COSTS = ["Input", "Output", "Request", "Energy"]


def planner(open_app: Open, **params: str) -> AppTest:
    return open_app("planner", **params)


def tiles(app: AppTest) -> dict[str, dict[str, str]]:
    data = next(entry for entry in component_data(app) if "tiles" in entry)
    return {tile["name"]: tile for tile in data["tiles"]}


def alts(app: AppTest) -> list[str]:
    return [entry["alt"] for entry in component_data(app) if "alt" in entry]


def press(app: AppTest, key: str) -> AppTest:
    return settled(app.button(key=key).click().run())


def scenario(app: AppTest) -> Scenario:
    now: Scenario = app.session_state["scenario"]
    return now


# What it answers


def test_the_answer_is_there_without_a_click(open_app: Open) -> None:
    app = planner(open_app)
    assert app.title[0].value.endswith("?")
    shown = tiles(app)
    assert list(shown) == TILES
    assert shown["Memory"]["value"] == "It fits"
    assert shown["Users"]["value"] == "215"
    assert shown["Context"]["value"] == "131,072"
    assert "Decode waits for memory" in words(app)
    assert [alt.partition(" ")[0] for alt in alts(app)] == ["Memory:", "The", "Roofline"]
    assert not app.error
    assert not app.warning


def test_a_slider_changes_the_scenario_and_everything_that_follows(open_app: Open) -> None:
    app = planner(open_app)
    before = tiles(app)
    app.select_slider(key="scenario_slide_batch").set_value(64)
    settled(app.run())
    assert scenario(app).batch == 64
    assert "batch 64" in words(app)
    after = tiles(app)
    assert after["TTFT"] != before["TTFT"]
    assert after["Users"] == before["Users"]


@pytest.mark.parametrize("name", TILES)
def test_each_number_opens_to_its_arithmetic(open_app: Open, name: str) -> None:
    app = planner(open_app)
    app.session_state["planner_open"] = name
    settled(app.run())
    html = "".join(item.value for item in app.html)
    assert 'aria-label="Inputs"' in html
    app.session_state[f"planner_worked_{name}_python"] = True
    settled(app.run())
    assert "print(" in app.code[0].value


def test_a_model_too_large_says_so_and_offers_what_would_help(open_app: Open) -> None:
    app = planner(open_app, m="llama-3.1-70b", v="1")
    assert tiles(app)["Memory"]["value"] == "Does not fit"
    assert tiles(app)["Users"]["value"] == "0"
    assert any("must fit into the" in error.value for error in app.error)
    assert "Then it fits, which it does not now" in words(app)


def test_an_unknown_capacity_is_unknown_and_never_zero(open_app: Open) -> None:
    app = planner(open_app, a="rtx-4080", v="1")
    assert tiles(app)["Memory"]["value"] == "Fits? Unknown"
    assert tiles(app)["Users"]["value"] == "unknown"
    assert tiles(app)["Context"]["value"] == "unknown"
    assert tiles(app)["TTFT"]["value"].endswith("ms")
    app.session_state["planner_open"] = "Users"
    settled(app.run())
    assert any("usable memory" in error.value for error in app.error)


def test_a_format_that_the_chip_lacks_is_a_sentence_with_a_way_out(open_app: Open) -> None:
    app = planner(open_app, a="t4", m="qwen3-0.6b", v="1")
    assert tiles(app)["TTFT"]["value"] == "unknown"
    assert tiles(app)["Memory"]["value"] == "It fits"
    assert any("NVIDIA T4 has no bf16 arithmetic" in error.value for error in app.error)
    press(app, "planner_levers_0")
    assert tiles(app)["TTFT"]["value"] != "unknown"
    assert not app.error


def test_a_split_is_planned_on_its_chips_and_can_be_undone(open_app: Open) -> None:
    whole = tiles(planner(open_app))
    app = planner(open_app, tp="2", n="2", v="1")
    assert not app.error
    assert "on the fullest chip" in tiles(app)["Memory"]["meaning"]
    assert float(tiles(app)["TPOT"]["value"].split()[0]) < float(whole["TPOT"]["value"].split()[0])
    assert [alt.partition(" ")[0] for alt in alts(app)] == ["Memory:", "The"]
    app.session_state["planner_open"] = "TPOT"
    settled(app.run())
    assert "This arithmetic must be of one chip" in app.error[0].value
    press(app, "scenario_unsplit")
    assert tiles(app)["Memory"]["value"] == "It fits"


# What it offers


@pytest.mark.parametrize("goal", ["tpot", "ttft", "throughput", "fit"])
def test_every_goal_has_levers_and_each_does_what_it_says(open_app: Open, goal: str) -> None:
    app = planner(open_app)
    app.segmented_control(key="planner_goal").set_value(goal)
    settled(app.run())
    before = scenario(app)
    press(app, "planner_levers_0")
    assert scenario(app) != before


def test_two_scenarios_stand_side_by_side(open_app: Open) -> None:
    app = press(planner(open_app), "planner_hold")
    assert "The two do not differ" in words(app)
    app.select_slider(key="scenario_slide_batch").set_value(16)
    settled(app.run())
    text = words(app)
    assert "batch 1 " in text
    assert "batch 16" in text
    press(app, "planner_swap")
    assert scenario(app).batch == 1
    press(app, "planner_release")
    assert "held" not in app.query_params


def test_the_page_names_and_shows_its_source(open_app: Open) -> None:
    app = planner(open_app)
    app.session_state["planner_source"] = True
    settled(app.run())
    assert len(tables(app)[0]) == len(page.SOURCES) + 1
    assert app.code[0].value.startswith("def plan(")


def test_the_print_view_unfolds_everything(open_app: Open) -> None:
    app = planner(open_app)
    app.session_state["print_view"] = True
    settled(app.run())
    html = "".join(item.value for item in app.html)
    assert html.count('aria-label="Inputs"') == len(TILES) + len(COSTS)
    assert len(app.code) == len(TILES) + len(COSTS) + len(page.SOURCES)
    assert len(tables(app)) == 4  # three pictures and the functions
    assert not app.expander


@pytest.mark.parametrize("name", ["planner", "lab", "kv_cache", "course", "notebook", "prefill_and_decode"])
def test_a_page_opened_first_on_a_fresh_server_stands_in_the_apps_frame(open_app: Open, name: str) -> None:
    app = open_app(name)  # AppTest opens a page as a fresh server does: without app.py
    assert [switch.key for switch in app.sidebar.toggle] == ["print_view"]


def test_equal_scenarios_of_two_visitors_do_not_mix(open_app: Open) -> None:
    first, second = planner(open_app, b="8", v="1"), planner(open_app, b="2", v="1")
    first.select_slider(key="scenario_slide_batch").set_value(32)
    settled(first.run())
    settled(second.run())
    assert (scenario(first).batch, scenario(second).batch) == (32, 2)


def test_every_chip_and_model_can_be_planned(open_app: Open) -> None:
    app = planner(open_app)
    for chip in accelerators():
        app.session_state["scenario"] = Scenario(accelerator=chip, model="qwen3-0.6b")
        settled(app.run())
        assert list(tiles(app)) == TILES
