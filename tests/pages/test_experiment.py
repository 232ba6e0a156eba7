"""An experiment on a page: every state it can be in, and that its result belongs to its settings."""

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import JobError
from core.lab.job import JobSnapshot, JobState
from core.ui.lab import service
from tests.pages.conftest import settled, state, words
from tests.pages.fake_lab import FakeLab, ready

pytestmark = pytest.mark.page


def page() -> None:
    """A page with one control and one experiment."""
    import streamlit as st  # noqa: PLC0415 - the function is a script of its own

    from core.errors import RecordError  # noqa: PLC0415
    from core.lab.experiment import Experiment  # noqa: PLC0415
    from core.ui.lab import experiment  # noqa: PLC0415
    from core.ui.lab.experiment import Notes  # noqa: PLC0415

    def draw(result: dict[str, object]) -> None:
        if "text" not in result:
            raise RecordError("A result must have a text; this one has none. Run it again.")
        st.markdown(f"It said {result['text']}.")

    size = st.number_input("Size", 1, 9, 4, key="size")
    recorded = {"text": "something elsewhere"} if st.session_state.get("ship") else None
    notes = Notes(noisy=lambda result: "The host was busy." if result.get("noisy") else "")
    experiment.show(
        Experiment("quality", {"size": size}, "the loss of a format"),
        draw,
        key="trial",
        recorded=recorded,
        notes=notes,
        problem="The size must be even; got 9. Choose 8." if size == 9 else "",
    )


@pytest.fixture
def app(lab: FakeLab, visits: service.Visits) -> AppTest:
    return settled(AppTest.from_function(page, default_timeout=30).run())


def press(app: AppTest, key: str) -> AppTest:
    return settled(app.button(key=key).click().run())


def test_nothing_is_said_to_be_nothing(app: AppTest) -> None:
    assert state(app) == "nothing"


def test_it_waits_runs_and_shows_what_came_out(app: AppTest, lab: FakeLab) -> None:
    lab.becomes = JobSnapshot("", JobState.QUEUED, position=2)
    press(app, "trial_run")
    assert state(app) == "queued"
    assert "2 jobs are ahead of you" in words(app)
    lab.jobs["cpu-0"] = JobSnapshot("cpu-0", JobState.RUNNING, phase="serving", fraction=0.25)
    settled(app.run())
    assert state(app) == "measuring"
    assert "the loss of a format" in words(app)
    assert "Serving." in words(app)
    lab.finish_experiment("cpu-0", {"text": "much"})
    settled(app.run())
    settled(app.run())
    assert state(app) == "measured"
    assert "It said much." in words(app)
    assert lab.experiments == {"cpu-0": ("quality", {"size": 4})}


def test_a_result_is_shown_beside_its_own_settings_only(app: AppTest, lab: FakeLab) -> None:
    press(app, "trial_run")
    lab.finish_experiment("cpu-0", {"text": "much"})
    settled(app.run())
    settled(app.number_input(key="size").set_value(5).run())
    assert state(app) == "nothing"
    assert "It said" not in words(app)
    settled(app.number_input(key="size").set_value(4).run())
    assert state(app) == "measured"


def test_another_job_of_the_visit_is_named(app: AppTest, lab: FakeLab) -> None:
    press(app, "trial_run")
    settled(app.number_input(key="size").set_value(5).run())
    assert "with other settings than are shown here" in words(app)


def test_cancel_ends_it_with_a_sentence(app: AppTest, lab: FakeLab) -> None:
    press(app, "trial_run")
    press(app, "trial_cancel")
    settled(app.run())
    assert state(app) == "failed"
    assert "You cancelled this job." in words(app)


def test_a_refusal_and_a_failure_are_sentences(app: AppTest, lab: FakeLab) -> None:
    lab.refusal = JobError("Up to 3 jobs may wait, and the queue is full. Try again in a minute.")
    press(app, "trial_run")
    assert "the queue is full" in words(app)
    lab.refusal, lab.becomes = None, JobSnapshot("", JobState.FAILED, message="It ran out of memory.")
    press(app, "trial_run")
    settled(app.run())
    assert "It ran out of memory." in words(app)


def test_settings_that_cannot_run_have_no_button_to_press(app: AppTest) -> None:
    settled(app.number_input(key="size").set_value(9).run())
    assert app.button(key="trial_run").disabled
    assert "Choose 8." in words(app)


def test_a_result_that_does_not_hold_together_is_said(app: AppTest, lab: FakeLab) -> None:
    press(app, "trial_run")
    lab.finish_experiment("cpu-0", {"noisy": True})
    settled(app.run())
    settled(app.run())
    assert state(app) == "noisy"
    assert "must have a text" in words(app)


def test_a_recorded_result_stands_in_until_there_is_an_own_one(app: AppTest, lab: FakeLab) -> None:
    app.session_state["ship"] = True
    settled(app.run())
    assert state(app) == "recorded"
    assert "It said something elsewhere." in words(app)


def test_while_it_waits_the_reason_is_told_and_the_recorded_result_stays(app: AppTest, lab: FakeLab) -> None:
    app.session_state["ship"] = True
    lab.becomes = JobSnapshot("", JobState.QUEUED, position=0)
    lab.now = ready(state="warming", phase="calibrating", fraction=0.3)
    press(app, "trial_run")
    assert state(app) == "queued"
    assert "You are next. First the model is loaded and this computer is calibrated once" in words(app)
    assert "It said something elsewhere." in words(app)
    lab.now = ready()
    settled(app.run())
    assert "You are next; it starts as soon as" in words(app)


def test_while_it_runs_again_the_result_of_before_stays(app: AppTest, lab: FakeLab) -> None:
    press(app, "trial_run")
    lab.finish_experiment("cpu-0", {"text": "much"})
    settled(app.run())
    press(app, "trial_run")
    assert state(app) == "measuring"
    assert "It said much." in words(app)
