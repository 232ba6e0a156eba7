"""The comparison of formats on page 12: its choice, its states, and what is shown of a result."""

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.lab.job import JobState
from core.lab.quality import QualityRequest
from core.lesson.quality_trial import COMPARED, experiment_of
from core.ui.lesson import recorded
from tests.lab.quality_example import quality_record
from tests.pages.conftest import Open, settled, state, tables, words
from tests.pages.fake_lab import FakeLab

pytestmark = pytest.mark.page

STEM = "quantising"


def press(app: AppTest) -> AppTest:
    return settled(app.button(key=f"{STEM}_run").click().run())


def measured(app: AppTest, lab: FakeLab, **changes: Any) -> AppTest:
    press(app)
    job, (kind, payload) = list(lab.experiments.items())[-1]
    assert kind == "quality"
    record = replace(quality_record(QualityRequest.from_json(payload)), **changes)
    lab.finish_experiment(job, record.to_json())
    settled(app.run())
    return settled(app.run())


def test_a_result_has_its_reference_its_table_and_its_pictures(open_app: Open, lab: FakeLab) -> None:
    app = measured(open_app(STEM), lab)
    assert state(app) == "measured"
    text = words(app)
    assert "They are not the weights that were trained" in text
    assert "does not show what 4 bits cost an unrounded model" in text
    assert "Each row rounds one thing" in text
    shown = " ".join(table.markup if hasattr(table, "markup") else str(table) for table in tables(app))
    for name in ("fp32, the reference", "int8-dynamic weights", "int4 cache"):
        assert name in shown
    assert {f"{STEM}_formats_csv", f"{STEM}_formats_json"} <= {button.key for button in app.download_button}
    assert "Weights in int8, signal to noise" in app.selectbox(key=f"{STEM}_map_of").options


def test_another_map_is_chosen_without_asking_the_lab(open_app: Open, lab: FakeLab) -> None:
    app = measured(open_app(STEM), lab)
    jobs = dict(lab.experiments)
    chosen = "Keys and values in int4, signal to noise"
    settled(app.selectbox(key=f"{STEM}_map_of").set_value(chosen).run())
    assert app.selectbox(key=f"{STEM}_map_of").value == chosen
    assert lab.experiments == jobs
    assert not app.error


@pytest.mark.parametrize("name", COMPARED)
def test_a_choice_is_what_is_asked_for_and_stands_in_the_link(
    open_app: Open, lab: FakeLab, name: str
) -> None:
    app = open_app(STEM)
    settled(app.selectbox(key=f"{STEM}_compare").set_value(name).run())
    assert app.query_params.get("set_compare", ["all formats"])[0] in {name, name[:1]} or name in str(
        app.query_params.get("set_compare")
    )
    measured(app, lab)
    weights, kv = COMPARED[name]
    payload = list(lab.experiments.values())[-1][1]
    assert (tuple(payload["weights"]), tuple(payload["kv"])) == (weights, kv)
    assert state(app) == "measured"
    assert not app.error


def test_a_result_of_other_formats_is_not_shown(open_app: Open, lab: FakeLab) -> None:
    app = measured(open_app(STEM), lab)
    settled(app.selectbox(key=f"{STEM}_compare").set_value("cache formats").run())
    assert state(app) == "nothing"
    assert "Each row rounds one thing" not in words(app)


def test_a_noisy_host_is_said_of_the_speeds_alone(open_app: Open, lab: FakeLab) -> None:
    app = measured(open_app(STEM), lab, noisy=("other programs used 40% of the processors",))
    assert state(app) == "noisy"
    assert "the other numbers do not depend on time" in words(app)


def test_a_recorded_result_stands_in_without_speeds(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(replace(row, step_s=()) for row in quality_record().rows)
    record = replace(quality_record(noisy=("other programs used 40% of the processors",)), rows=rows)
    asked = experiment_of(record.request)
    monkeypatch.setattr(recorded, "shipped_experiments", lambda folder: {asked.key: record.to_json()})
    app = open_app(STEM)
    assert state(app) == "recorded"
    text = words(app)
    assert "The host was busy, so no speeds are given" in text
    assert "Each row rounds one thing" in text


def test_what_was_left_out_is_named(open_app: Open, lab: FakeLab) -> None:
    app = measured(open_app(STEM), lab, left_out=("fp16 cache",))
    assert "Time did not allow fp16 cache" in words(app)


def test_a_failure_is_a_sentence_and_it_can_be_tried_again(open_app: Open, lab: FakeLab) -> None:
    app = press(open_app(STEM))
    lab.end(list(lab.jobs)[-1], JobState.FAILED, "It ran out of memory. Compare fewer formats.")
    settled(app.run())
    assert state(app) == "failed"
    assert "It ran out of memory" in words(app)
    assert not app.button(key=f"{STEM}_run").disabled


def test_a_result_that_does_not_hold_is_a_sentence(open_app: Open, lab: FakeLab) -> None:
    app = press(open_app(STEM))
    lab.finish_experiment(list(lab.experiments)[-1], {"schema": "another"})
    settled(app.run())
    settled(app.run())
    assert any("A comparison of formats must have" in error.value for error in app.error)
    assert not app.exception


def test_print_shows_every_map_and_every_granularity(open_app: Open, lab: FakeLab) -> None:
    app = measured(open_app(STEM), lab)
    app.session_state["print_view"] = True
    settled(app.run())
    assert "Expected is an error of" in words(app)
    drawn = [item.proto.json for item in app.get("bidi_component") if "signal to noise" in item.proto.json]
    assert len(drawn) == len(quality_record().maps)
