"""The measured beats of pages 9 and 14: the picture's trace, served beside the simulator, and its badges."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.lab.serve_record import ServeRecord
from core.lesson.lesson_file import lessons
from core.lesson.serving_trial import experiment_of
from core.ui.lesson import recorded
from tests.pages.conftest import Open, component_data, settled, state, tables, words
from tests.pages.fake_lab import FakeLab
from tests.pages.served_example import record_of

pytestmark = pytest.mark.page

STEMS = ("batching", "paged_attention")


def run(app: AppTest, lab: FakeLab, stem: str) -> dict[str, Any]:
    """Press Run; what was asked for."""
    settled(app.button(key=f"{stem}_run").click().run())
    kind, payload = list(lab.experiments.values())[-1]
    assert kind == "serve-trace"
    return payload


def finish(app: AppTest, lab: FakeLab, result: dict[str, Any]) -> AppTest:
    lab.finish_experiment(list(lab.jobs)[-1], result)
    settled(app.run())
    return settled(app.run())


@pytest.mark.parametrize("stem", STEMS)
def test_a_served_trace_stands_beside_the_simulated_one(open_app: Open, lab: FakeLab, stem: str) -> None:
    app = open_app(stem)
    payload = run(app, lab, stem)
    assert state(app) == "measuring"
    finish(app, lab, record_of(payload))
    assert state(app) == "measured"
    text = words(app)
    assert "Equal to the simulator**: yes" in text
    assert "Equal outputs**: yes" in text
    (table,) = (rows for rows in tables(app) if "steps served" in str(rows))
    steps = {row[0]: row[1:] for row in table}
    assert steps["steps served"] == steps["steps simulated"]
    assert any(data.get("title", "").startswith("Served") for data in component_data(app))


def test_the_pictures_steps_are_what_was_served(open_app: Open, lab: FakeLab) -> None:
    app = open_app("batching")
    finish(app, lab, record_of(run(app, lab, "batching")))
    titles = [data["title"] for data in component_data(app) if "title" in data]
    assert "Served, static: 37 steps, 46 % of the seats used" in titles
    assert "Served, continuous: 25 steps, 68 % of the seats used" in titles


def test_a_control_asks_for_another_trace_and_the_old_result_is_not_shown(
    open_app: Open, lab: FakeLab
) -> None:
    app = open_app("batching")
    first = run(app, lab, "batching")
    finish(app, lab, record_of(first))
    settled(app.select_slider(key="batching_seats").set_value(2).run())
    assert state(app) == "nothing"
    second = run(app, lab, "batching")
    assert (first["places"], second["places"]) == (4, 2)
    settled(app.button(key="batching_cancel").click().run())
    settled(app.select_slider(key="batching_seats").set_value(4).run())
    assert state(app) == "measured"


def test_steps_that_differ_from_the_simulator_are_told(open_app: Open, lab: FakeLab) -> None:
    app = open_app("paged_attention")
    result = record_of(run(app, lab, "paged_attention"))
    result["services"][0]["steps"][3]["record"]["pages_used"] += 1
    finish(app, lab, result)
    assert "Equal to the simulator**: no" in words(app)
    assert "step 3" in words(app)


def test_other_tokens_are_told(open_app: Open, lab: FakeLab) -> None:
    app = open_app("paged_attention")
    result = record_of(run(app, lab, "paged_attention"))
    result["services"][1]["requests"][0]["token_ids"][0] = 99
    finish(app, lab, result)
    assert "Equal outputs**: no, 1 of 10 answers differ" in words(app)


def test_a_busy_host_leaves_the_counts(open_app: Open, lab: FakeLab) -> None:
    app = open_app("batching")
    finish(app, lab, record_of(run(app, lab, "batching"), ["other programs used 80% of the processors"]))
    assert state(app) == "noisy"
    assert "Its times are not to be trusted, its counts are" in words(app)
    assert "Equal to the simulator**: yes" in words(app)


def test_a_result_that_does_not_hold_is_one_sentence(open_app: Open, lab: FakeLab) -> None:
    app = open_app("batching")
    result = record_of(run(app, lab, "batching"))
    del result["services"][0]["steps"][0]["held_tokens"]
    finish(app, lab, result)
    assert state(app) == "failed"
    assert "must have a value at 'services.0.steps.0.held_tokens'" in words(app)
    assert "steps served" not in str(tables(app))


def test_a_reload_finds_the_trace_that_is_served(
    open_app: Open, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.ui.visit_key.ask", lambda: "0" * 32)
    monkeypatch.setattr("core.ui.visit_key.known_key", lambda: "0" * 32)
    payload = run(open_app("batching"), lab, "batching")
    reloaded = open_app("batching")
    assert state(reloaded) == "measuring"
    finish(reloaded, lab, record_of(payload))
    assert state(reloaded) == "measured"


def test_the_trace_goes_on_while_another_page_is_read(open_app: Open, lab: FakeLab) -> None:
    app = open_app("batching")
    payload = run(app, lab, "batching")
    settled(app.switch_page("pages/kv_cache.py").run())
    assert state(app) == "measuring"
    finish(app, lab, record_of(payload))
    assert state(app) == "nothing", "a lesson's own measurement is not this one"
    settled(app.switch_page("pages/batching.py").run())
    assert state(app) == "measured"


def show_me(app: AppTest) -> AppTest:
    """See the answer without a prediction."""
    return settled(app.button(key="batching_guess_skip").click().run())


def test_a_recorded_run_is_shown_where_none_was_made(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = lessons()["batching"]
    asked = experiment_of(lesson, replace(lesson.base_case, settings=lesson.defaults))
    monkeypatch.setattr(recorded, "shipped_experiments", lambda folder: {asked.key: record_of(asked.payload)})
    app = open_app("batching")
    assert state(app) == "nothing", "before the prediction it would give the answer away"
    assert "25 steps" not in words(app)
    show_me(app)
    assert state(app) == "recorded"
    assert "Equal to the simulator**: yes" in words(app)
    settled(app.select_slider(key="batching_seats").set_value(2).run())
    assert state(app) == "nothing"


def test_a_recorded_run_of_a_busy_host_shows_its_counts_and_no_times(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = lessons()["batching"]
    asked = experiment_of(lesson, replace(lesson.base_case, settings=lesson.defaults))
    busy = record_of(asked.payload, ["other programs used 80% of the processors"])
    monkeypatch.setattr(recorded, "shipped_experiments", lambda folder: {asked.key: busy})
    shown = str(tables(show_me(open_app("batching"))))
    assert "steps simulated" in shown
    assert "wall time" not in shown


def test_every_shipped_experiment_is_a_pages_own_and_equal_to_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    shipped = recorded.shipped_experiments(recorded._FOLDER)
    for stem in STEMS:
        lesson = lessons()[stem]
        asked = experiment_of(lesson, replace(lesson.base_case, settings=lesson.defaults))
        record = ServeRecord.from_json(shipped[asked.key])
        assert record.equal_to_simulator
        assert record.equal_outputs
        assert asdict(record.host)["cpu"]
