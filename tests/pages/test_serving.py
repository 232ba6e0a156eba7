"""The measured beats of pages 9 and 14: the picture's trace, served beside the simulator, and its badges."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.analytic.step_record import StepRecord
from core.lab.serve_record import ServedRequest, ServedStep, ServeRecord, Service
from core.lab.serve_request import ServeRequest, Way
from core.lesson.lesson_file import lessons
from core.lesson.serving_trial import experiment_of
from core.simulate.batching import SimulatedStep
from core.ui.lesson import recorded
from tests.lab import examples
from tests.pages.conftest import Open, component_data, settled, state, tables, words
from tests.pages.fake_lab import FakeLab

pytestmark = pytest.mark.page

STEMS = ("batching", "paged_attention")
STEP_S = 0.02


def served_step(number: int, step: SimulatedStep) -> ServedStep:
    names = {name: getattr(step, name) for name in ("requests", "reading", "tables", "held_tokens", "now")}
    record = StepRecord(
        index=number,
        kind=step.kind,
        num_sequences=step.num_sequences,
        new_tokens=step.new_tokens,
        context_tokens=step.context_tokens,
        weight_bytes=1,
        kv_read_bytes=1,
        kv_write_bytes=1,
        pages_used=step.pages_used,
        pages_free=step.pages_free,
        device_s=STEP_S,
        host_s=STEP_S,
        num_waiting=step.num_waiting,
        num_preempted=step.num_preempted,
        shared_tokens=step.shared_tokens,
    )
    return ServedStep(record=record, end_s=STEP_S * (number + 1), **names)


def served(request: ServeRequest, way: Way) -> Service:
    """A server that does what the simulator says, in equal steps."""
    steps = tuple(served_step(number, step) for number, step in enumerate(request.simulated(way)))
    requests = []
    for index, arrival in enumerate(request.arrivals()):
        ends = [step.end_s for step in steps if index in step.requests]
        requests.append(ServedRequest(0.0, ends[0], ends[-1], tuple(range(arrival.new_tokens))))
    return Service(way, steps, tuple(requests))


def record_of(payload: dict[str, Any], noisy: Sequence[str] = ()) -> dict[str, Any]:
    request = ServeRequest.from_json(payload)
    record = ServeRecord(
        created_at="2026-01-02T03:04:05+00:00",
        host=examples.record().host,
        request=request,
        model_name="A model",
        services=tuple(served(request, way) for way in request.ways),
        noisy=tuple(noisy),
    )
    return json.loads(json.dumps(record.to_json()))  # type: ignore[no-any-return]


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
