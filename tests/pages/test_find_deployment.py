"""The page that searches: its answer, its controls, its links, and what it says when nothing is left."""

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from core.analytic.cost import OLD_AFTER_DAYS, list_price
from core.catalog.accelerators import accelerators
from core.catalog.custom import Own, pasted_model, typed_chip
from core.catalog.custom_chip import ChipSheet
from core.catalog.feed_forward import DenseMLP
from core.catalog.scenario import Scenario, decode
from core.ui.find import link, page
from core.ui.scenario import record
from tests.pages.conftest import Open, component_data, settled, tables, words

pytestmark = pytest.mark.page
STEM = "find_deployment"
HOSTILE = "<script>alert(1)</script>"


def ranked(app: AppTest) -> list[list[str]]:
    """The list's rows, without its head."""
    return next(table for table in tables(app) if table[0][0] == "chip")[1:]


def planner_links(app: AppTest) -> dict[str, Scenario]:
    """What each link to the planner opens, by its label."""
    found = {}
    for item in app.get("page_link"):
        decoded = decode(dict(parse_qsl(item.proto.query_string)), record.models(), record.chips())
        assert decoded.notes == ()
        found[item.proto.label.replace("\\", "")] = decoded.scenario
    return found


def front_picture(app: AppTest) -> dict[str, Any]:
    return next(data for data in component_data(app) if data.get("title") == "What speed costs")


def with_own(app: AppTest, own: Own, **scenario: str) -> AppTest:
    """The page with something that the visitor brought, chosen in the bar."""
    app.session_state["scenario_own"] = own
    app.session_state["scenario"] = replace(app.session_state["scenario"], **scenario)
    return settled(app.run())


# The answer


def test_the_answer_is_there_without_a_click(open_app: Open) -> None:
    app = open_app(STEM)
    assert app.title[0].value.endswith("?")
    assert re.search(r"\d[\d,]+ of \d[\d,]+ candidates do what is asked\.", words(app))
    rows = ranked(app)
    assert len(rows) == 10
    assert all(len(row) == len(page.COLUMNS) for row in rows)
    costs = [float(row[9]) for row in rows]
    assert costs == sorted(costs)
    assert all(float(row[7]) <= 50 and float(row[6]) <= 1000 for row in rows)
    picture = front_picture(app)
    assert "at most 50.0 ms" in picture["svg"]
    assert "cheapest" in picture["alt"]
    assert not app.error
    assert not app.warning


def test_prices_have_their_date_and_old_ones_are_marked(open_app: Open) -> None:
    rows = {row[0].partition(" · ")[2]: row[-1] for row in ranked(open_app(STEM))}
    by_name = {chip.name: list_price(chip) for chip in accelerators().values()}
    for name, shown in rows.items():
        price = by_name[name]
        assert price is not None
        assert price.date in shown
        assert ("(old)" in shown) == ((price.age_days() or 0) > OLD_AFTER_DAYS)


def test_every_row_and_every_letter_opens_its_own_plan_in_the_planner(open_app: Open) -> None:
    app = open_app(STEM, i="512", v="1")
    links = planner_links(app)
    lettered = [label for label in links if label[0].isalpha()]
    numbered = [label for label in links if label[0].isdigit()]
    assert lettered[0].startswith("A · ")
    assert len(numbered) == 10
    for row in ranked(app):
        number, name = row[0].split(" · ")
        now = links[f"{number} · {row[1]} × {name}"]
        assert accelerators()[now.accelerator].name == name
        assert (f"{now.count:,}", now.weights, now.kv, f"{now.batch:,}") == (row[1], row[3], row[4], row[5])
        assert now.input_tokens == 512
    for item in app.get("page_link"):
        assert "v=1" in item.proto.query_string


def test_a_link_opens_the_planner_and_it_fits_there(open_app: Open) -> None:
    app = open_app(STEM)
    query = dict(parse_qsl(app.get("page_link")[0].proto.query_string))
    planner = open_app("planner", **query)
    tiles = next(data["tiles"] for data in component_data(planner) if "tiles" in data)
    assert tiles[0]["value"] == "It fits"
    assert not planner.error
    assert not planner.warning


def test_the_tokens_of_the_bar_are_what_is_searched_for(open_app: Open) -> None:
    short, long = ranked(open_app(STEM)), ranked(open_app(STEM, i="30000", v="1"))
    assert short != long
    assert float(long[0][9]) > float(short[0][9])


def test_the_code_behind_the_page_can_be_read(open_app: Open) -> None:
    app = open_app(STEM)
    app.session_state["find_source"] = True
    settled(app.run())
    assert "core/analytic/search/candidates.py" in words(app)


def test_why_others_are_left_out_and_what_the_numbers_mean(open_app: Open) -> None:
    app = open_app(STEM)
    app.session_state["find_left_out"] = True
    app.session_state["find_notes"] = True
    settled(app.run())
    reasons = dict(next(table for table in tables(app) if table[0][0] == "reason")[1:])
    assert "tokens too slow" in reasons
    assert int(reasons["announced chips, not on sale (chips)"]) == sum(
        chip.announced for chip in accelerators().values()
    )
    assert "tp n: n chips share every layer" in words(app)


def test_the_print_view_unfolds_everything(open_app: Open) -> None:
    app = open_app(STEM)
    settled(app.toggle(key="print_view").set_value(True).run())
    heads = [table[0][0] for table in tables(app)]
    assert {"mark", "chip", "reason"} <= set(heads)
    assert not planner_links(app)


# The controls


def test_a_limit_changes_the_answer_and_the_link(open_app: Open) -> None:
    app = open_app(STEM)
    settled(app.number_input(key="find_tpot_ms").set_value(10.0).run())
    assert app.query_params["tpot"] == "10"
    assert all(float(row[7]) <= 10 for row in ranked(app))
    settled(app.number_input(key="find_ttft_ms").set_value(None).run())
    assert app.query_params["ttft"] == "any"
    other = open_app(STEM, tpot="10", ttft="any")
    assert ranked(other) == ranked(app)
    assert other.number_input(key="find_ttft_ms").value is None


def test_a_load_needs_replicas_and_they_are_paid_for(open_app: Open) -> None:
    app = open_app(STEM)
    settled(app.number_input(key="find_requests_per_s").set_value(200.0).run())
    assert app.query_params["rate"] == "200"
    assert any("replicas" in row[2] for row in ranked(app))
    assert max(int(row[1].replace(",", "")) for row in ranked(app)) > 8


@pytest.mark.parametrize(("measure", "column", "sign"), [("memory", 8, -1), ("latency", 7, 1)])
def test_the_list_can_be_ranked_by(open_app: Open, measure: str, column: int, sign: int) -> None:
    app = open_app(STEM)
    settled(app.segmented_control(key="find_by").set_value(measure).run())
    assert app.query_params["by"] == measure
    shown = [sign * float(row[column]) for row in ranked(app)]
    assert shown == sorted(shown)
    assert ranked(open_app(STEM, by=measure)) == ranked(app)


def test_what_is_asked_is_there_on_coming_back(open_app: Open) -> None:
    app = open_app(STEM, tpot="20", by="latency")
    settled(app.switch_page("pages/course.py").run())
    app.query_params.clear()
    settled(app.switch_page(f"pages/{STEM}.py").run())
    assert app.number_input(key="find_tpot_ms").value == 20
    queries = [dict(parse_qsl(data["query"])) for data in component_data(app) if "query" in data]
    assert queries == [{"tpot": "20", "by": "latency"}]


def test_the_scenario_stays_when_a_limit_changes(open_app: Open) -> None:
    app = open_app(STEM, m="qwen3-8b", v="1")
    settled(app.number_input(key="find_tpot_ms").set_value(30.0).run())
    assert app.query_params["m"] == "qwen3-8b"
    assert app.session_state["scenario"].model == "qwen3-8b"


# What a visitor brings


def test_an_own_chip_takes_part_and_its_typed_price_counts(open_app: Open) -> None:
    made = typed_chip(ChipSheet("my chip", "hbm", 500, 20_000, {"bf16": 5000, "fp8": 10_000}))
    own = Own().with_chip(made)
    app = with_own(open_app(STEM, by="latency"), own)
    assert any(row[0].endswith("my chip") for row in ranked(app))
    mine = next(row for row in ranked(app) if row[0].endswith("my chip"))
    assert mine[9] == mine[10] == "unknown"
    app.session_state[f"planner_price_{made.accelerator.id}"] = 0.01
    settled(app.segmented_control(key="find_by").set_value("cost").run())
    first = ranked(app)[0]
    assert first[0] == "1 · my chip"
    assert first[10] == "$0.01, typed in"


def test_a_price_typed_in_the_planner_holds_here(open_app: Open) -> None:
    app = open_app("planner")
    settled(app.number_input(key="planner_price_h100-sxm-80gb").set_value(0.05).run())
    settled(app.switch_page(f"pages/{STEM}.py").run())
    assert "H100 SXM5" in ranked(app)[0][0]
    assert ranked(app)[0][10] == "$0.05, typed in"


def test_an_own_model_is_searched_for(open_app: Open) -> None:
    app = open_app(STEM)
    before = ranked(app)
    model = pasted_model("tiny", json.dumps(CONFIG))
    with_own(app, Own().with_model(model), model=model.spec.id)
    assert "tiny" in app.html[0].value
    assert ranked(app) != before


CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 32_000,
}


# When nothing is left, and bad input


def test_a_model_that_no_chip_holds_is_one_sentence(open_app: Open) -> None:
    huge = {**CONFIG, "hidden_size": 65_536, "intermediate_size": 262_144, "num_hidden_layers": 300}
    model = pasted_model("huge", json.dumps(huge))
    app = with_own(open_app(STEM), Own().with_model(model), model=model.spec.id)
    assert len(app.error) == 1
    assert "huge does not fit, and the nearest needs" in app.error[0].value
    assert not any(table[0][0] == "chip" for table in tables(app))


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [(9, "only the formats of the scenario are searched"), (193, "up to 192 different kinds of layers")],
)
def test_many_different_layers_are_said(open_app: Open, kinds: int, sentence: str) -> None:
    made = pasted_model("uneven", json.dumps(CONFIG))
    layer = made.spec.layers[0]
    assert isinstance(layer.feed_forward, DenseMLP)
    layers = tuple(
        replace(layer, feed_forward=replace(layer.feed_forward, intermediate_size=size))
        for size in range(1024, 1024 + 128 * kinds, 128)
    )
    own = Own().with_model(replace(made, spec=replace(made.spec, layers=layers)))
    app = with_own(open_app(STEM), own, model=made.spec.id)
    assert sentence in words(app).replace("\\", "")


def test_a_part_that_no_chip_computes_is_one_sentence(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = replace(accelerators()["h100-sxm-80gb"], peak_flops_per_s={"fp32": 67e12})
    monkeypatch.setattr(record, "chips", lambda: {chip.id: chip})
    app = open_app(STEM)
    assert len(app.error) == 1
    assert "that no chip here computes" in app.error[0].value


def test_no_chip_on_sale_is_one_sentence(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = replace(accelerators()["h100-sxm-80gb"], announced=True)
    monkeypatch.setattr(record, "chips", lambda: {chip.id: chip})
    app = open_app(STEM)
    assert len(app.error) == 1
    assert "needs one chip that is on sale" in app.error[0].value
    assert app.number_input(key="find_tpot_ms").value == 50


def test_too_little_time_says_what_would_be_enough(open_app: Open) -> None:
    app = open_app(STEM, tpot="0.1")
    assert len(app.error) == 1
    said = app.error[0].value.replace("\\", "")
    assert "allow more than" in said
    enough = re.search(r"more than ([\d.]+) ms for each token after it", said)
    assert enough is not None
    settled(app.number_input(key="find_tpot_ms").set_value(float(enough[1]) * 1.01).run())
    assert not app.error
    assert ranked(app)


def test_no_known_price_says_so_and_other_ranks_remain(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = replace(accelerators()["h100-sxm-80gb"], price=None)
    monkeypatch.setattr(record, "chips", lambda: {chip.id: chip})
    app = open_app(STEM)
    assert "No chip that does what is asked has a known price" in words(app)
    settled(app.segmented_control(key="find_by").set_value("latency").run())
    assert len(ranked(app)) == 1


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"tpot": "-1"}, "TPOT limit in milliseconds must be from"),
        ({"ttft": HOSTILE}, "TTFT limit in milliseconds must be a number"),
        ({"rate": "1e400"}, "must be from 0.001 to 100,000"),
        ({"by": HOSTILE}, "must be ranked by one of"),
        ({"i": "999999999999999", "v": "1"}, "The input tokens must be from"),
        ({"m": HOSTILE, "v": "1"}, "is not known here"),
    ],
)
def test_a_hostile_link_is_repaired_and_said(open_app: Open, params: dict[str, str], sentence: str) -> None:
    app = open_app(STEM, **params)
    shown = [warning.value.replace("\\", "") for warning in app.warning]
    assert len(shown) == 1
    assert sentence in shown[0]
    assert "<script" not in "".join(warning.value.replace("\\<", "") for warning in app.warning)
    settled(app.segmented_control(key="find_by").set_value("latency").run())


@pytest.mark.parametrize("value", [-1.0, 1e300, float("nan"), float("inf"), True, "many"])
def test_a_number_that_a_browser_should_not_send_changes_nothing(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    state: dict[str, object] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    link.set_number("tpot_ms", value)
    link.set_measure(value)
    assert state == {}


def test_the_largest_numbers_of_every_field_are_answered(open_app: Open) -> None:
    app = open_app(STEM, v="1", i="2000000", o="1000000", rate="100000", ttft="3600000", tpot="600000")
    assert not app.warning
    assert app.error or ranked(app)
    assert "nan" not in words(app)
