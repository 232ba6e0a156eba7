"""The lab's part on many requests: simulated at once, served after Run, side by side, saved and loaded."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.lab import serve_file
from core.lab.serve_record import ServeRecord
from core.lab.serve_request import ServeRequest
from core.ui.lab import endpoint
from core.ui.lab.many.settings import TraceSettings, settings_of
from tests.lab import examples
from tests.pages.conftest import Open, component_data, settled, state, tables, words
from tests.pages.fake_lab import FakeLab, ready
from tests.pages.served_example import STEP_S, record_of

pytestmark = pytest.mark.page


def titles(app: AppTest) -> list[str]:
    return [data["title"] for data in component_data(app) if "title" in data]


def run(app: AppTest, lab: FakeLab) -> dict[str, Any]:
    settled(app.button(key="serve_run").click().run())
    kind, payload = list(lab.experiments.values())[-1]
    assert kind == "serve-trace"
    return payload


def finish(app: AppTest, lab: FakeLab, result: dict[str, Any]) -> AppTest:
    lab.finish_experiment(list(lab.jobs)[-1], result)
    settled(app.run())
    return settled(app.run())


def test_the_parts_are_chosen_by_a_click_and_by_the_address(open_app: Open) -> None:
    app = open_app()
    assert "part" not in app.query_params
    settled(app.segmented_control(key="lab_part").set_value("many").run())
    assert app.query_params["part"] == "many"
    assert "Prompts are random tokens" in words(app)
    app.query_params["part"] = "one"
    assert app.text_area(key="lab_prompt") if settled(app.run()) else False
    assert settled(open_app(part="many")).number_input(key="serve_requests").value == 8
    assert settled(open_app(part="no such part")).text_area(key="lab_prompt")


def test_a_server_of_ones_own_is_offered_only_to_who_may(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(part="own")
    assert "Your own server" not in app.segmented_control(key="lab_part").options
    assert app.text_area(key="lab_prompt"), "the first part stands in"
    assert "from your own computer only" in words(app), "and a sentence says why"
    monkeypatch.setattr(endpoint, "is_allowed", lambda: True)
    app = open_app(part="own")
    assert "Your own server" in app.segmented_control(key="lab_part").options
    assert app.text_input(key="endpoint_url")


def test_other_parts_keep_each_others_settings(open_app: Open) -> None:
    app = open_app(lab_weights="int8")
    settled(app.segmented_control(key="lab_part").set_value("many").run())
    settled(app.number_input(key="serve_requests").set_value(5).run())
    settled(app.segmented_control(key="lab_part").set_value("one").run())
    assert app.selectbox(key="lab_weights").value == "int8"
    settled(app.segmented_control(key="lab_part").set_value("many").run())
    assert app.number_input(key="serve_requests").value == 5


def test_everything_is_simulated_and_predicted_before_a_run(open_app: Open, lab: FakeLab) -> None:
    app = open_app(part="many")
    assert state(app) == "nothing"
    assert not lab.jobs
    found = titles(app)
    assert any(title.startswith("Continuous, in pages: ") for title in found)
    assert any(title.startswith("One by one, in pages: ") for title in found)
    assert sum(title.startswith("The cache over time") for title in found) == 2
    assert sum(title.startswith("The cache in step") for title in found) == 2
    assert "they are made before the run" in words(app)
    assert "not yet" in words(app)


def test_while_this_computer_is_calibrated_counts_stand_there_and_times_follow(
    open_app: Open, lab: FakeLab
) -> None:
    lab.now = ready(state="warming", phase="measuring memory", info=replace(ready().info, calibration=None))
    app = open_app(part="many")
    assert "Now: measuring memory." in words(app)
    assert "not known yet" in words(app)
    lab.now = ready()
    assert "not known yet" not in words(settled(app.run()))


def test_a_served_trace_stands_beside_its_prediction_with_its_badges(open_app: Open, lab: FakeLab) -> None:
    app = open_app(part="many")
    payload = run(app, lab)
    assert state(app) == "measuring"
    assert any(title.startswith("Continuous, in pages: ") for title in titles(app)), "simulated meanwhile"
    finish(app, lab, record_of(payload))
    assert state(app) == "measured"
    text = words(app)
    assert "Equal outputs**: 8 of 8 requests have the same tokens" in text
    assert text.count("Equal to the simulator**: yes") == 2
    assert "not yet" not in text


def test_the_prediction_is_the_one_of_before_the_run(open_app: Open, lab: FakeLab) -> None:
    app = open_app(part="many")
    before = predictions(app)
    payload = run(app, lab)
    slower = replace(examples.calibration(), step_fixed_s=0.05)
    lab.now = ready(info=replace(ready().info, calibration=slower))
    finish(app, lab, record_of(payload))
    assert predictions(app) == before
    assert predictions(open_app(part="many")) != before


def predictions(app: AppTest) -> list[str]:
    """The predicted cells of both ways."""
    return re.findall(r"dashed currentColor\">([^<]+)", "".join(item.value for item in app.html))


def test_unequal_tokens_are_an_error_in_fp32_and_explained_where_numbers_are_rounded(
    open_app: Open, lab: FakeLab
) -> None:
    said = {"fp32": ":material/error: **Equal outputs**: 7 of 8", "int4": "Others\\: C."}
    for weights, sentence in said.items():
        app = open_app(part="many", serve_weights=weights)
        result = record_of(run(app, lab))
        result["services"][0]["requests"][2]["token_ids"][0] = 99
        finish(app, lab, result)
        assert sentence in words(app)


def test_steps_that_are_not_the_simulators_are_told(open_app: Open, lab: FakeLab) -> None:
    app = open_app(part="many")
    result = record_of(run(app, lab))
    result["services"][0]["steps"][1]["record"]["pages_used"] += 1
    finish(app, lab, result)
    assert "Equal to the simulator**: no. continuous, in pages\\: step 1\\: pages\\_used" in words(app)


def test_the_tables_of_requests_and_steps_can_be_read(open_app: Open, lab: FakeLab) -> None:
    app = open_app(part="many")
    payload = run(app, lab)
    finish(app, lab, record_of(payload))
    app.session_state["serve_requests_fold"] = app.session_state["serve_steps_fold_0"] = True
    settled(app.run())
    by_request = next(rows for rows in tables(app) if rows[0][-1] == "equal outputs")
    assert [row[0] for row in by_request[1:]] == list("ABCDEFGH")
    assert {row[-1] for row in by_request[1:]} == {"yes"}
    by_step = next(rows for rows in tables(app) if rows[0][0] == "step")
    request = ServeRequest.from_json(payload)
    assert len(by_step) - 1 == len(request.simulated(request.ways[0]))
    assert float(by_step[2][-1]) == pytest.approx(1000 * STEP_S)


def test_the_block_table_shows_the_step_of_choice(open_app: Open) -> None:
    app = open_app(part="many", serve_beside="none")
    settled(app.select_slider(key="serve_way_0_step").set_value(3).run())
    assert any(title.startswith("The cache in step 3: ") for title in titles(app))


def test_a_small_cache_takes_pages_away_and_it_is_marked(open_app: Open) -> None:
    app = open_app(part="many", serve_beside="none", serve_slots="112", serve_seed="1")
    assert any("loses its pages and starts again" in str(data) for data in component_data(app))


def test_guesses_leave_the_prediction_out_and_say_so(open_app: Open) -> None:
    app = open_app(part="many", serve_guesses="4")
    assert "steps are counted as without guesses, and no time is predicted" in words(app)


def test_what_cannot_be_served_is_one_sentence_and_no_picture(open_app: Open) -> None:
    app = open_app(part="many", serve_requests="64", serve_prompt="2048")
    assert state(app) == "failed"
    assert app.button(key="serve_run").disabled
    assert not [title for title in titles(app) if title.startswith("Continuous")]


def test_a_link_is_repaired_and_said(open_app: Open) -> None:
    app = open_app(part="many", serve_requests="1000", serve_policy="magic")
    assert app.number_input(key="serve_requests").value == 64
    notes = " ".join(warning.value for warning in app.warning)
    assert "Requests must be from 1 to 64; the link says 1,000, so 64 is used." in notes
    assert "The policy 'magic' in the link is not known here" in notes


def load(app: AppTest, content: bytes) -> AppTest:
    app.session_state["serve_load_fold"] = True
    settled(app.run())
    return settled(app.file_uploader[0].upload("served.json", content).run())


def saved(**changes: object) -> tuple[ServeRecord, bytes]:
    request = TraceSettings(**changes).request()  # type: ignore[arg-type]
    record = ServeRecord.from_json(record_of(request.to_json()))
    return record, serve_file.dumps(record).encode()


def test_a_saved_record_is_shown_elsewhere_and_its_settings_can_be_taken(open_app: Open) -> None:
    record, content = saved(requests=3, beside="cache", seed=5)
    app = load(open_app(part="many"), content)
    assert state(app) == "elsewhere"
    assert "Equal outputs**: 3 of 3 requests" in words(app)
    settled(app.button(key="serve_take").click().run())
    assert state(app) == "nothing"
    assert app.number_input(key="serve_requests").value == 3
    assert app.query_params["serve_seed"] == "5"
    assert app.session_state["serve_settings"].request() == record.request


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", json.dumps({"schema": "a run"}).encode()])
def test_a_file_that_is_no_record_is_one_sentence(open_app: Open, content: bytes) -> None:
    app = load(open_app(part="many"), content)
    assert len(app.error) == 1
    assert app.error[0].value.startswith("A served trace must")
    assert state(app) == "nothing"


@pytest.mark.parametrize("beside", ["single", "cache", "static", "none"])
def test_settings_come_back_from_their_request(beside: str) -> None:
    settings = TraceSettings(beside=beside, guesses=3, places=2, spread="fixed", weights="int8")
    assert settings_of(settings.request()) == settings
