"""The lab as a lesson: predictions before a run, kept with what came of them and the reason given."""

import pytest
from streamlit.testing.v1 import AppTest

from core.lesson.lab_questions import lab_questions
from core.lesson.notebook import Notebook, load
from core.lesson.run_guess import RunGuess
from tests.pages.conftest import Open, settled, tables, words
from tests.pages.fake_lab import FakeLab
from tests.pages.test_lab import look_again, press_run, the_job

pytestmark = pytest.mark.page


def notebook(app: AppTest) -> Notebook:
    found: Notebook = app.session_state["notebook"]
    return found


def predict(app: AppTest, option: str, sure: str = "certain") -> AppTest:
    settled(app.segmented_control(key="lab_guess").set_value(option).run())
    return settled(app.segmented_control(key="lab_guess_sure").set_value(sure).run())


def measured(app: AppTest, lab: FakeLab) -> AppTest:
    """The run that is under way ends; its record is a tenth slower than predicted."""
    lab.finish(the_job(lab))
    return look_again(app)


def test_a_prediction_is_in_the_notebook_before_the_run_and_its_outcome_after(
    open_app: Open, lab: FakeLab
) -> None:
    app = press_run(predict(open_app(), "much_more"))
    (begun,) = notebook(app).runs
    assert (begun.option, begun.confidence, begun.ratio) == ("much_more", "certain", None)
    measured(app, lab)
    (kept,) = notebook(app).runs
    assert kept.ratio == pytest.approx(1.1, rel=0.1)
    assert kept.right is False
    assert "You said: more than 1.5 times as long, certain." in words(app)
    settled(app.run())
    assert notebook(app).runs == (kept,)


def test_a_run_without_a_prediction_is_kept_as_one(open_app: Open, lab: FakeLab) -> None:
    app = measured(press_run(open_app()), lab)
    (kept,) = notebook(app).runs
    assert (kept.option, kept.right) == ("", None)
    assert "You made no prediction." in words(app)


def test_every_run_asks_anew(open_app: Open, lab: FakeLab) -> None:
    app = measured(press_run(predict(open_app(), "same")), lab)
    assert app.segmented_control(key="lab_guess").value is None
    assert "For the run before you said: the same, within a tenth, certain." in words(app)
    press_run(app)
    assert [guess.option for guess in notebook(app).runs] == ["same", ""]
    assert notebook(app).runs[1].ratio is None


@pytest.mark.parametrize("reason", lab_questions().reasons, ids=lambda reason: reason.limit)
def test_the_reason_is_checked_against_the_arithmetic_and_kept(
    open_app: Open, lab: FakeLab, reason: object
) -> None:
    app = measured(press_run(open_app()), lab)
    limit = reason.limit  # type: ignore[attr-defined]
    settled(app.radio(key="lab_because").set_value(limit).run())
    (kept,) = notebook(app).runs
    assert kept.reason == limit
    told = app.success if limit == kept.limit else app.warning
    assert len(told) == 1


def test_the_notebook_lists_runs_and_a_file_keeps_them(open_app: Open) -> None:
    mine = Notebook().with_run(RunGuess("<b>", "same", "a guess", 1.2, "memory", "overhead"))
    assert load(mine.to_json()) == mine
    app = open_app("notebook")
    app.session_state["notebook"] = mine
    settled(app.run())
    (_, row) = tables(app)[0]
    assert row[:5] == ["<b>", "the same, within a tenth", "a guess", "1.20", "no"]


def test_a_file_from_before_has_no_runs() -> None:
    assert (
        load(
            '{"schema": "llm-inference-lab/notebook", "version": 1, "predictions": [], "chosen": [], '
            '"attempts": []}'
        ).runs
        == ()
    )


def test_the_page_leads_on_and_names_its_functions(open_app: Open) -> None:
    app = open_app()
    labels = [item.proto.label for item in app.get("page_link")]
    assert "Before: the course map" in labels
    assert any("Prefill and decode" in label for label in labels)
    app.session_state["lab_source"] = True
    settled(app.run())
    assert tables(app)[-1][1][:2] == ["the prediction", "predict"]
