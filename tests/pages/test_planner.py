"""The planner's page: what it answers, what it opens, what it offers, and what it admits."""

import pytest
from streamlit.testing.v1 import AppTest

from core.analytic.datasheet import machine_from
from core.analytic.plan_on_chips import plan_on_chips
from core.catalog.accelerators import accelerators
from core.catalog.models import model
from core.catalog.scenario import Scenario
from core.ui.planner import page
from core.units import format_gib, format_seconds, significant
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


def test_what_fits_but_not_into_an_engines_share_is_no_plain_yes(open_app: Open) -> None:
    app = planner(open_app, b="150", i="3000", v="1")  # more than nine tenths of an H100
    held = tiles(app)["Memory"]
    assert (held["value"], held["tone"]) == ("It fits", "plain")
    assert "more than the 90% that engines take" in held["meaning"]
    assert "an engine with its default share of 90% of the memory" in app.warning[0].value
    roomy = planner(open_app, b="8", v="1")
    assert tiles(roomy)["Memory"]["tone"] == "good"
    assert not roomy.warning


def test_the_first_token_of_a_batch_is_that_of_all_its_prompts(open_app: Open) -> None:
    assert "arriving at once" not in tiles(planner(open_app))["TTFT"]["meaning"]
    told = tiles(planner(open_app, b="1500", v="1"))["TTFT"]["meaning"]
    assert told.startswith("time to first token, all 1,500 prompts arriving at once")


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
    assert [alt.partition(" ")[0] for alt in alts(app)] == ["Memory:", "The", "Roofline"]
    assert "tp 2" in app.html[0].value
    assert "The model is split over 2 chips: tp 2. Without a split each chip holds all of it." in words(app)
    assert "each chip then holds the whole model" in app.button(key="scenario_unsplit").help
    press(app, "scenario_unsplit")
    assert tiles(app)["Memory"]["value"] == "It fits"


@pytest.mark.parametrize("name", TILES)
def test_each_number_of_a_split_plan_opens_to_its_arithmetic(open_app: Open, name: str) -> None:
    app = planner(open_app, m="llama-3.3-70b", n="8", tp="4", pp="2", v="1")
    app.session_state["planner_open"] = name
    settled(app.run())
    html = "".join(item.value for item in app.html)
    assert 'aria-label="Inputs"' in html
    assert ("collectives" in html) == (name in {"TTFT", "TPOT"})
    assert not app.error


def test_a_split_plan_is_that_of_the_arithmetic(open_app: Open) -> None:
    app = planner(open_app, m="llama-3.3-70b", a="a100-sxm-80gb", n="4", tp="4", b="8", v="1")
    now = scenario(app)
    made = plan_on_chips(now, model(now.model), machine_from(accelerators()[now.accelerator])).plan
    shown = tiles(app)
    assert made.ttft_s is not None
    assert made.tpot_s is not None
    assert made.tokens_per_s is not None
    assert made.memory is not None
    assert shown["TTFT"]["value"] == format_seconds(made.ttft_s)
    assert shown["TPOT"]["value"] == format_seconds(made.tpot_s)
    assert shown["Tokens/s"]["value"] == significant(made.tokens_per_s)
    assert shown["Memory"]["meaning"].startswith(format_gib(float(made.memory.total_bytes)))
    assert " to " in shown["TPOT"]["meaning"]
    assert int(shown["Users"]["value"].replace(",", "")) > 8
    assert "Decode waits for" in words(app)


def test_a_plan_that_cannot_be_says_why_and_a_button_makes_one_that_can(open_app: Open) -> None:
    app = planner(open_app, m="llama-3.3-70b", n="3", tp="3", v="1")
    assert {tiles(app)[name]["value"] for name in TILES} == {"unknown"}
    assert any("must divide the 64 attention heads; 3 does not" in error.value for error in app.error)
    assert "The nearest plans that work" in words(app)
    press(app, "planner_nearest_0")
    assert (scenario(app).tp, scenario(app).count) == (4, 4)
    assert tiles(app)["Memory"]["value"] == "It fits"
    assert not app.error


def test_a_split_without_its_chips_gets_them_with_a_button(open_app: Open) -> None:
    app = planner(open_app, tp="2", v="1")
    assert any("the one chip there is" in error.value for error in app.error)
    press(app, "planner_nearest_0")
    assert not app.error


# What it offers


def test_a_lever_splits_a_model_that_is_too_large(open_app: Open) -> None:
    app = planner(open_app, m="llama-3.3-70b", a="a100-sxm-80gb", v="1")
    assert tiles(app)["Memory"]["value"] == "Does not fit"
    levers = [data["rows"] for data in component_data(app) if "rows" in data][-1]
    place = [row["label"] for row in levers].index("split over 2 chips")
    press(app, f"planner_levers_{place}")
    assert (scenario(app).tp, scenario(app).count) == (2, 2)
    assert tiles(app)["Memory"]["value"] == "It fits"


def test_a_split_is_compared_with_none(open_app: Open) -> None:
    app = press(planner(open_app, n="2", v="1"), "planner_hold")
    app.session_state["scenario"] = Scenario(count=2, tp=2)
    settled(app.run())
    assert "Both fit" in words(app)
    assert "as fast" in words(app)
    assert ", tp 2" in words(app)


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
