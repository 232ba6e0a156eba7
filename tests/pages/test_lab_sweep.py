"""The lab's sweep: what is set, cells as they come in, stopping, going on, and files."""

from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.errors import JobError
from core.lab import sweep_record
from core.lab.experiment import SWEEP
from core.lab.job import JobSnapshot, JobState
from core.lab.sweep_parts import begun_part, cell_part
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import MOST_SEED, SweepRequest
from core.ui.lab.link import KV, WEIGHTS
from core.ui.lab.sweep import controls, files, settings
from core.ui.lab.sweep.results import speed_points
from core.ui.lab.watch import WAITING_S
from tests.lab.sweep_example import sweep
from tests.pages.conftest import Open, settled, state, words
from tests.pages.fake_lab import FakeLab, ready

pytestmark = pytest.mark.page

WHOLE = sweep(settings.FIRST)
BEGUN = replace(WHOLE, cells=WHOLE.cells[:2])


def open_sweep(open_app: Open) -> AppTest:
    return open_app("lab", part="sweep")


def press(app: AppTest, key: str) -> AppTest:
    return settled(app.button(key=key).click().run())


def last(lab: FakeLab) -> str:
    return list(lab.jobs)[-1]


def stream(lab: FakeLab, record: SweepRecord) -> None:
    """What the worker has streamed of a record by now."""
    job = last(lab)
    parts = (begun_part(replace(record, cells=())), *map(cell_part, record.cells))
    lab.jobs[job] = replace(lab.jobs[job], phase="sweeping", fraction=0.2, parts=parts)


def test_it_says_how_many_cells_there_are_before_anything_runs(open_app: Open) -> None:
    app = open_sweep(open_app)
    assert state(app) == "nothing"
    count = len(settings.FIRST.cells())
    assert f"{count} cells, about" in words(app)
    assert not app.error


def test_it_looks_again_until_the_measuring_process_is_ready(
    open_app: Open, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody touches the page meanwhile: only a part that runs again by itself can notice."""
    again: dict[str, float | None] = {}
    fragment = st.fragment

    def noted(*args: Any, run_every: float | None = None, key: str = "", **others: Any) -> Any:
        again[key] = run_every
        return fragment(*args, run_every=run_every, key=key or None, **others)

    monkeypatch.setattr(st, "fragment", noted)
    lab.now = ready(state="warming", phase="calibrating", info=replace(ready().info, calibration=None))
    app = open_sweep(open_app)
    assert state(app) == "starting"
    assert "Now: calibrating" in words(app)
    assert again["sweep_await"] == WAITING_S
    lab.now = ready()
    assert state(settled(app.run())) == "nothing"


def test_cells_come_in_while_it_runs_and_stay_when_it_is_done(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    kind, payload = lab.experiments[last(lab)]
    assert (kind, payload["record"]) == (SWEEP, None)
    assert SweepRequest.from_json(payload["request"]) == settings.FIRST
    stream(lab, BEGUN)
    app = settled(app.run())
    assert state(app) == "measuring"
    assert f"Done: 2 of {len(WHOLE.cells)} cells. Now:" in words(app)
    assert "Bytes, speed and quality" in words(app)
    lab.finish_experiment(last(lab), WHOLE.to_json())
    app = settled(app.run())
    app = settled(app.run())
    assert state(app) == "measured"
    assert "Errors by metric" in "".join(item.value for item in app.html)
    assert len(lab.jobs) == 1


def test_a_part_that_ends_unfinished_is_gone_on_with(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    lab.finish_experiment(last(lab), BEGUN.to_json())
    app = settled(app.run())
    app = settled(app.run())
    assert len(lab.jobs) == 2
    assert SweepRecord.from_json(lab.experiments[last(lab)][1]["record"]) == BEGUN
    assert state(app) == "measuring"


def test_a_sweep_that_cannot_be_run_again_keeps_the_one_before(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    lab.finish_experiment(last(lab), WHOLE.to_json())
    app = settled(settled(app.run()).run())
    lab.refusal = JobError("20 jobs wait already. Try again in a minute.")
    app = press(app, "sweep_run")
    assert state(app) == "failed"
    assert "Try again in a minute. The cells are those of the sweep before." in words(app)
    assert app.button(key="sweep_run").label == "Run again"


def test_a_sweep_that_is_run_again_goes_on_too_and_is_one_result(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    lab.finish_experiment(last(lab), WHOLE.to_json())
    app = press(settled(settled(app.run()).run()), "sweep_run")
    lab.finish_experiment(last(lab), BEGUN.to_json())
    app = settled(settled(app.run()).run())
    assert len(lab.jobs) == 3, "the second part of the second sweep"
    assert state(app) == "measuring"
    lab.finish_experiment(last(lab), WHOLE.to_json())
    app = settled(settled(app.run()).run())
    assert len(app.session_state["lab_results"]) == 1


def test_a_stopped_sweep_keeps_its_cells_and_goes_on_when_asked(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    stream(lab, BEGUN)
    app = press(app, "sweep_stop")
    app = settled(app.run())
    assert len(lab.jobs) == 1, "what was stopped does not go on by itself"
    assert state(app) == "ended"
    done = f"Done: {len(BEGUN.cells)} of {len(BEGUN.request.cells())} cells."
    assert f"{done} Go on, or begin anew." in words(app)
    assert app.button(key="sweep_run").label == "Go on"
    app = press(app, "sweep_run")
    assert SweepRecord.from_json(lab.experiments[last(lab)][1]["record"]) == BEGUN


def test_a_part_that_fails_says_why_keeps_its_cells_and_does_not_go_on(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    stream(lab, BEGUN)
    lab.end(last(lab), JobState.FAILED, "The measuring process was killed. Start it again.")
    app = settled(app.run())
    app = settled(app.run())
    assert (state(app), len(lab.jobs)) == ("ended", 1)
    assert "The measuring process was killed" in words(app)
    assert "Go on, or begin anew." in words(app)
    assert app.button(key="sweep_run").label == "Go on"


def test_a_refusal_is_a_sentence(open_app: Open, lab: FakeLab) -> None:
    lab.refusal = JobError("20 jobs wait already. Try again in a minute.")
    app = press(open_sweep(open_app), "sweep_run")
    assert state(app) == "failed"
    assert "20 jobs wait already" in words(app)


def test_settings_that_cannot_be_stop_the_button_and_not_the_page(open_app: Open) -> None:
    app = open_sweep(open_app)
    settled(app.multiselect(key="lab_sweep_weights").set_value([]).run())
    assert state(app) == "failed"
    assert "one value or more for weights" in words(app)
    assert app.button(key="sweep_run").disabled
    settled(app.multiselect(key="lab_sweep_weights").set_value(["int8"]).run())
    assert state(app) == "nothing"


def test_a_sweep_of_noisy_cells_alone_is_called_noisy(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    noisy = tuple(replace(swept, noisy=("other programs were at work",)) for swept in WHOLE.cells)
    lab.finish_experiment(last(lab), replace(WHOLE, cells=noisy).to_json())
    assert state(settled(settled(app.run()).run())) == "noisy"


def test_what_is_done_stays_in_view_while_the_sweep_waits_its_next_turn(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    lab.becomes = JobSnapshot("", JobState.QUEUED, position=1, estimated_wait_s=9.0)
    lab.finish_experiment(last(lab), BEGUN.to_json())
    app = settled(settled(app.run()).run())
    assert state(app) == "queued"
    said = words(app)
    assert "1 job is ahead of you" in said
    assert f"Not done yet: {len(WHOLE.cells) - len(BEGUN.cells)} cells." in said


def test_a_sweep_made_anew_shows_nothing_of_the_one_before_it(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    lab.finish_experiment(last(lab), WHOLE.to_json())
    app = settled(settled(app.run()).run())
    lab.becomes = JobSnapshot("", JobState.QUEUED, position=1, estimated_wait_s=9.0)
    app = press(app, "sweep_run")
    assert state(app) == "queued"
    assert "cells predicted, then run" not in words(app)


def test_another_setting_is_another_sweep_and_the_first_is_not_lost(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    lab.finish_experiment(last(lab), WHOLE.to_json())
    app = settled(app.run())
    app = settled(app.run())
    settled(app.multiselect(key="lab_sweep_batches").set_value([1]).run())
    assert state(app) == "nothing"
    settled(app.multiselect(key="lab_sweep_batches").set_value([1, 4]).run())
    assert state(app) == "measured"


def test_a_saved_sweep_is_loaded_with_its_settings(open_app: Open) -> None:
    other = sweep(SweepRequest(weights=("int8",), prompts=(64,), new_tokens=4))
    app = open_sweep(open_app)
    app.session_state[files._LOADED] = sweep_record.loads(sweep_record.dumps(other))
    app.session_state[settings._SETTINGS] = other.request
    settled(app.run())
    assert state(app) == "elsewhere"
    assert "1 cell on A processor" in words(app)


def test_the_speed_picture_holds_the_heaviest_load_alone() -> None:
    points = speed_points(WHOLE)
    assert {point.name for point in points} == {"bf16", "int8", "int4"}
    by_bytes = sorted(points, key=lambda point: point.num_bytes)
    assert [point.name for point in by_bytes] == ["int4", "int8", "bf16"]
    judged = speed_points(sweep(replace(settings.FIRST, quality=True)))
    assert all(point.loss == pytest.approx(10.0) for point in judged)
    assert speed_points(replace(WHOLE, cells=())) == []


def test_how_long_it_takes_follows_the_predictions() -> None:
    assert "1 cell, about" in controls.length(SweepRequest(), 3.0)
    assert "not known yet" in controls.length(SweepRequest(), None)


def test_a_reload_finds_the_sweep_its_settings_and_goes_on(
    open_app: Open, lab: FakeLab, tab: dict[str, str]
) -> None:
    tab["key"] = "0" * 32
    app = open_sweep(open_app)
    app = press(settled(app.multiselect(key="lab_sweep_weights").set_value(["int4"]).run()), "sweep_run")
    asked = replace(settings.FIRST, weights=("int4",))
    whole = sweep(asked)
    stream(lab, replace(whole, cells=whole.cells[:1]))
    again = settled(open_sweep(open_app).run())
    assert state(again) == "measuring"
    assert again.multiselect(key="lab_sweep_weights").value == ["int4"]
    lab.finish_experiment(last(lab), replace(whole, cells=whole.cells[:2]).to_json())
    settled(settled(again.run()).run())
    assert SweepRequest.from_json(lab.experiments[last(lab)][1]["request"]) == asked
    assert len(lab.jobs) == 2, "what the tab began before its reload goes on"


def test_settings_wait_while_their_sweep_runs(open_app: Open) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    names = ("weights", "kv", "batches", "prompts")
    assert all(app.multiselect(key=f"lab_sweep_{name}").disabled for name in names)
    app = settled(press(app, "sweep_stop").run())
    assert not any(app.multiselect(key=f"lab_sweep_{name}").disabled for name in names)


def test_a_sweep_that_failed_does_not_go_on_after_another_run(open_app: Open, lab: FakeLab) -> None:
    app = press(open_sweep(open_app), "sweep_run")
    stream(lab, BEGUN)
    lab.end(last(lab), JobState.FAILED, "The measuring process was killed. Start it again.")
    app = settled(settled(app.run()).run())
    del app.session_state["lab_experiment_trouble"]  # as the next job that is started does
    app = settled(app.run())
    assert len(lab.jobs) == 1
    assert app.button(key="sweep_run").label == "Go on"


def test_a_sweep_of_a_device_that_is_not_here_is_shown_and_can_be_run_here(
    open_app: Open, lab: FakeLab
) -> None:
    other = sweep(replace(settings.FIRST, device="cuda"))
    app = open_sweep(open_app)
    app.session_state[files._LOADED] = other
    app.session_state[settings._SETTINGS] = other.request
    settled(app.run())
    assert state(app) == "elsewhere"
    app = press(app, "sweep_run")
    assert (last(lab), lab.experiments[last(lab)][1]["request"]["device"]) == ("cpu-0", "cpu")


def test_other_settings_than_those_of_a_file_from_elsewhere_are_for_this_computer(open_app: Open) -> None:
    other = sweep(replace(settings.FIRST, device="cuda"))
    app = open_sweep(open_app)
    app.session_state[files._LOADED] = other
    app.session_state[settings._SETTINGS] = other.request
    settled(settled(app.run()).multiselect(key="lab_sweep_batches").set_value([2]).run())
    assert state(app) == "nothing"
    assert app.session_state[settings._SETTINGS] == replace(settings.FIRST, batches=(2,))


def test_every_setting_that_a_file_may_hold_stands_in_its_widget(open_app: Open) -> None:
    asked = SweepRequest(weights=WEIGHTS, kv=KV, batches=(3,), prompts=(7,), new_tokens=2, seed=MOST_SEED)
    app = open_sweep(open_app)
    app.session_state[settings._SETTINGS] = replace(asked, models=("shape:qwen3-0.6b",), most=256)
    app.session_state["sweep_more"] = True
    settled(app.run())
    assert app.number_input(key="lab_sweep_seed").value == MOST_SEED
