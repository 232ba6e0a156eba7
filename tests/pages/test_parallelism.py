"""Page 19 in the app: degrees count the chips, reasons stand below, and a click applies a plan."""

import pytest
from streamlit.testing.v1 import AppTest

from core.analytic.collectives import LinkSpeed
from core.catalog.scenario import Scenario
from core.lab.split_request import SplitRequest
from tests.lab.split_example import split_trial
from tests.lab.test_local_link import fitted, following
from tests.pages.conftest import Open, component_data, settled, state, tables, words
from tests.pages.fake_lab import FakeLab

pytestmark = pytest.mark.page


def scenario(app: AppTest) -> Scenario:
    found: Scenario = app.session_state["scenario"]
    return found


def degrees(app: AppTest) -> tuple[int, int, int, int]:
    now = scenario(app)
    return now.tp, now.pp, now.ep, now.count


def slide(app: AppTest, name: str, value: int) -> AppTest:
    return settled(app.select_slider(key=f"parallelism_{name}").set_value(value).run())


def picture(app: AppTest) -> str:
    return next(str(data["alt"]) for data in component_data(app) if "alt" in data)


def test_a_degree_brings_its_chips_only_where_it_does_not_divide_them(open_app: Open) -> None:
    app = open_app("parallelism")
    assert picture(app).startswith("TP 1 × PP 1 × EP 1 × DP 1: 1 chip.")
    slide(app, "tp", 4)
    assert degrees(app) == (4, 1, 1, 4)
    slide(app, "count", 8)
    assert picture(app).startswith("TP 4 × PP 1 × EP 1 × DP 2: 8 chips.")
    slide(app, "pp", 2)
    assert degrees(app) == (4, 2, 1, 8)
    slide(app, "tp", 16)
    assert degrees(app) == (16, 2, 1, 32)
    assert app.query_params["n"] == "32"
    assert "8 chips are no whole number of replicas of 32" in words(app)
    assert "TP 16 × PP 2 on 32 chips" in words(app)


def test_what_speaks_against_a_plan_is_said_and_a_click_applies_another(open_app: Open) -> None:
    app = open_app("parallelism", tp="3", n="3")
    text = words(app)
    assert "Against this plan" in text
    assert "must divide the 32 attention heads; 3 does not" in text
    assert "no time can be given" in text
    settled(app.button(key="parallelism_plans_0").click().run())
    tp, pp, ep, count = degrees(app)
    assert (pp, ep) == (1, 1)
    assert tp in {2, 4}
    assert count == tp
    assert "Against this plan" not in words(app)


def test_chips_that_a_plan_does_not_use_are_said(open_app: Open) -> None:
    app = slide(open_app("parallelism", tp="2", n="2"), "count", 3)
    assert "The plan must use the 3 chips there are" in words(app)


def test_plans_to_look_at_are_offered_and_applied(open_app: Open) -> None:
    app = open_app("parallelism", m="qwen3-235b-a22b", n="8", tp="8")
    assert "TP 8 × EP 8 on 8 chips" in words(app)
    number = [row["label"] for data in component_data(app) for row in data.get("rows", ())].index(
        "TP 8 × EP 8 on 8 chips"
    )
    settled(app.button(key=f"parallelism_plans_{number}").click().run())
    assert degrees(app) == (8, 1, 8, 8)
    assert "16 experts a layer" in picture(app)


def test_a_chip_without_a_link_is_one_sentence(open_app: Open) -> None:
    app = open_app("parallelism", a="raspberry-pi-5", tp="2", n="2", w="fp32", k="fp32")
    assert "need a link between them" in words(app)


def test_a_link_of_before_opens_as_it_did(open_app: Open) -> None:
    assert degrees(open_app("parallelism", v="1", m="llama-2-70b", n="8", tp="4")) == (4, 1, 1, 8)


def test_a_split_run_is_drawn_with_its_exchanges_beside_the_arithmetic(open_app: Open, lab: FakeLab) -> None:
    app = open_app("parallelism")
    assert state(app) == "nothing"
    settled(app.button(key="parallelism_run").click().run())
    assert lab.experiments["cpu-0"] == ("split", SplitRequest().to_json())
    lab.finish_experiment("cpu-0", split_trial(SplitRequest()).to_json())
    settled(app.run())
    assert state(app) == "measured"
    assert "3 processes wrote the same 2 tokens as one" in words(app)
    rows = {row[0]: row for row in tables(app)[0]}
    assert rows["sums after attention"][1:4] == ["60", "414,720", "414,720"]


def test_an_exchange_stands_beside_its_prediction_where_a_link_was_measured(
    open_app: Open, lab: FakeLab
) -> None:
    app = open_app("parallelism")
    settled(app.button(key="parallelism_run").click().run())
    trial = split_trial(SplitRequest(), link=fitted(following(LinkSpeed(2e9, 80e-6), 2)))
    lab.finish_experiment("cpu-0", trial.to_json())
    app.session_state["parallelism_times"] = True
    settled(app.run())
    (found,) = [rows for rows in tables(app) if "median, ms" in str(rows)]
    assert {row[0]: row[-1] for row in found}["sums after the MLP"] == "0.0869"
    assert "80.0 µs and 2.00 GB/s one way" in words(app)


def test_another_way_to_split_is_another_experiment_and_stands_in_the_link(
    open_app: Open, lab: FakeLab
) -> None:
    app = open_app("parallelism")
    settled(app.selectbox(key="parallelism_ways").set_value("3 stages in a row (PP 3)").run())
    assert "ways" in "".join(app.query_params)
    settled(app.button(key="parallelism_run").click().run())
    request = SplitRequest(tp=1, pp=3)
    assert lab.experiments["cpu-0"] == ("split", request.to_json())
    trial = split_trial(request, others=True, noisy=("others were at work",))
    lab.finish_experiment("cpu-0", trial.to_json())
    settled(app.run())
    assert state(app) == "noisy"
    assert "wrote other tokens than one" in words(app)
    assert "the chosen token, told to all" in str(tables(app)[0])
    assert "The arithmetic leaves out the chosen token" in words(app)


def test_a_result_that_was_changed_is_a_sentence(open_app: Open, lab: FakeLab) -> None:
    app = open_app("parallelism")
    settled(app.button(key="parallelism_run").click().run())
    lab.finish_experiment("cpu-0", {**split_trial(SplitRequest()).to_json(), "split": {}})
    settled(app.run())
    assert "A record of a split run must have" in words(app)
