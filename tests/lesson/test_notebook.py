"""A notebook keeps what a learner did, saves it, and refuses files that are no notebooks."""

import doctest
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import RecordError, RequestError
from core.lesson import notebook as notebook_module
from core.lesson.exercise import Verdict, draw
from core.lesson.lesson_file import lessons
from core.lesson.lesson_records import CONFIDENCES
from core.lesson.notebook import MOST_BYTES, MOST_ENTRIES, LessonProgress, Notebook, load
from core.lesson.prediction import predict_choice, predict_number, skip_prediction, true_amount, true_option

NUMBER, CHOICE = lessons()["prefill_and_decode"], lessons()["kv_cache"]
INSTANCE = draw(CHOICE, CHOICE.exercises[0], 3)
HOSTILE = "<script>alert('x')</script> ${x} {y} 🚀"


def full() -> Notebook:
    right = repr(INSTANCE.answer.value)
    return (
        Notebook()
        .with_prediction(predict_number(NUMBER, 10, "certain"))
        .with_prediction(predict_choice(CHOICE, "square", "a guess"))
        .with_choice(CHOICE, "recall", 0)
        .with_choice(CHOICE, "because", 1)
        .with_choice(CHOICE, "because", 0)
        .with_attempt(INSTANCE, "1", INSTANCE.check("1"))
        .with_attempt(INSTANCE, right, INSTANCE.check(right))
    )


def test_examples_hold() -> None:
    assert doctest.testmod(notebook_module).failed == 0


# --- Predictions ----------------------------------------------------------------------------------


def test_a_number_is_so_many_times_off() -> None:
    made = predict_number(NUMBER, 10, "certain")
    assert made.factor == pytest.approx(31.2, rel=0.01)
    assert (made.right, made.surprising) == (False, True)
    assert made.sentence == "You said 10 ×; it is 312 ×. That is 31.2 times too low."
    close = predict_number(NUMBER, 500, "fairly sure")
    assert (close.right, close.surprising) == (True, False)
    assert "1.61 times too high" in close.sentence
    assert predict_number(NUMBER, 310, "a guess").sentence.endswith("That is it.")


def test_the_right_option_is_the_one_nearest_to_the_computed_value() -> None:
    assert true_option(NUMBER) is None
    option = true_option(CHOICE)
    assert option is not None
    assert (option.id, true_amount(CHOICE).text) == ("linear", "1.07")
    assert predict_choice(CHOICE, "linear", "certain").right is True
    wrong = predict_choice(CHOICE, "square", "certain")
    assert (wrong.right, wrong.factor, wrong.true_choice) == (False, None, "linear")


def test_to_be_shown_is_recorded_as_skipped() -> None:
    made = skip_prediction(NUMBER)
    assert (made.kind, made.right, made.factor, made.confidence) == ("skipped", None, None, "")
    assert made.sentence == "You asked to be shown, so nothing was predicted."
    assert made.true_value == pytest.approx(312, rel=0.01)


@pytest.mark.parametrize("value", [0.5, 20_000, -1.0, float("nan"), float("inf")])
def test_a_mark_must_be_on_the_scale(value: float) -> None:
    with pytest.raises(RequestError, match="must be from 1 to 10,000 ×"):
        predict_number(NUMBER, value, "certain")


def test_unknown_options_are_sentences() -> None:
    with pytest.raises(RequestError, match="must be one of flat, linear, square; got '<b>'"):
        predict_choice(CHOICE, "<b>", "certain")
    with pytest.raises(RequestError, match="must be one of a guess, fairly sure, certain; got 'maybe'"):
        predict_choice(CHOICE, "flat", "maybe")


@given(st.floats(1, 10_000), st.sampled_from(CONFIDENCES))
def test_the_factor_is_one_or_more(value: float, confidence: str) -> None:
    made = predict_number(NUMBER, value, confidence)
    assert made.factor is not None
    assert made.factor >= 1
    assert made.right is (made.factor <= 2)


# --- The notebook ---------------------------------------------------------------------------------


def test_changes_leave_the_old_notebook_as_it_was() -> None:
    empty = Notebook()
    one = empty.with_prediction(skip_prediction(NUMBER))
    assert empty.empty
    assert not one.empty


def test_a_prediction_is_committed_once() -> None:
    first = full()
    assert first.with_prediction(predict_number(NUMBER, 300, "a guess")) == first
    kept = first.prediction("prefill_and_decode")
    assert kept is not None
    assert kept.value == 10
    assert first.prediction("another") is None


def test_the_latest_choice_and_every_attempt_count() -> None:
    found = full()
    latest = found.answer("kv_cache", "because")
    assert latest is not None
    assert (latest.option, latest.right) == (0, True)
    assert found.answer("prefill_and_decode", "because") is None
    assert [attempt.correct for attempt in found.tries("kv_cache", "cache_size")] == [False, True]


def test_progress_counts_exercises() -> None:
    assert full().progress(CHOICE) == LessonProgress(True, True, 1, 1, 2)
    assert full().progress(CHOICE).done
    begun = full().progress(NUMBER)
    assert (begun.begun, begun.done, begun.solved) == (True, False, 0)
    assert not Notebook().progress(NUMBER).begun


def test_the_same_answer_given_twice_at_once_is_one_answer() -> None:
    kept, verdict = full(), INSTANCE.check("2")
    once = kept.with_attempt(INSTANCE, "2", verdict)
    assert len(once.attempts) == len(kept.attempts) + 1
    assert once.with_attempt(INSTANCE, "2", verdict) == once
    assert len(once.with_attempt(INSTANCE, "3", INSTANCE.check("3")).attempts) == len(once.attempts) + 1


def test_a_full_notebook_says_so() -> None:
    kept = full()
    many = replace(kept, attempts=kept.attempts[:1] * MOST_ENTRIES, chosen=kept.chosen[:1] * MOST_ENTRIES)
    with pytest.raises(RecordError, match="up to 500 answers of a kind; this one is full"):
        many.with_attempt(INSTANCE, "2", INSTANCE.check("2"))
    with pytest.raises(RecordError, match="is full"):
        many.with_choice(CHOICE, "because", 0)
    assert len(many.to_json().encode()) < MOST_BYTES
    assert load(many.to_json()) == many


# --- Saved and loaded -----------------------------------------------------------------------------


def test_what_was_saved_is_what_is_loaded() -> None:
    for kept in (Notebook(), full(), Notebook().with_prediction(skip_prediction(CHOICE))):
        assert load(kept.to_json()) == kept
        assert load(kept.to_json().encode()) == kept


@settings(max_examples=30)
@given(st.text(max_size=200), st.floats(1e-6, 1e6), st.booleans())
def test_any_answer_survives(typed: str, value: float, correct: bool) -> None:
    kept = Notebook().with_attempt(INSTANCE, typed, Verdict(correct, "A sentence.", value))
    assert load(kept.to_json()) == kept


def test_hostile_text_stays_text() -> None:
    kept = Notebook().with_attempt(INSTANCE, HOSTILE + "\x00\n\ud800", Verdict(False, "No.", 1.0))
    (attempt,) = load(kept.to_json()).attempts
    assert attempt.typed == HOSTILE
    data = json.loads(kept.to_json())
    data["attempts"][0]["sentence"] = "\ud800" + HOSTILE * 100
    sentence = load(json.dumps(data)).attempts[0].sentence
    sentence.encode()
    assert len(sentence) <= 600


def changed(path: str, value: object) -> str:
    data = json.loads(full().to_json())
    at: Any = data
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in parents:
        at = at[key]
    at[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must be whole JSON"),
        (full().to_json()[:-30], "must be whole JSON"),
        ("[1]", "must have an object"),
        ("{}", "must have a value at 'schema'"),
        (changed("schema", "other"), "one of llm-inference-lab/notebook"),
        (changed("version", 2), "must be of version 1; this one is of version 2. Open it with the app"),
        (changed("version", "1"), "a whole number"),
        (changed("predictions", {}), "a list at 'predictions'"),
        (changed("predictions.0.value", None), "a number where a number was predicted"),
        (changed("predictions.1.value", 3.0), "null elsewhere"),
        (changed("predictions.0.value", -1), "a number from 1e-300"),
        (changed("predictions.0.unit", "<b>"), "one of B, kB"),
        (changed("predictions.0.confidence", "mad"), "one of a guess, fairly sure, certain"),
        (changed("predictions.1.lesson", "prefill_and_decode"), "one prediction a lesson"),
        (changed("chosen.0.option", 99), "a whole number from 0 to 9"),
        (changed("chosen.0.kind", "why"), "one of because, recall"),
        (changed("attempts.0.seed", -1), "a whole number from 0 to 999,999"),
        (changed("attempts.0.correct", 1), "true or false"),
        (changed("attempts.0.value", float("nan")), "finite numbers"),
        (changed("attempts", [{}] * 501), "a value at 'attempts.0.lesson'"),
        ("x" * (MOST_BYTES + 1), "may have up to 1.00 MB; this one has 1.00 MB"),
    ],
)
def test_a_file_that_is_no_notebook_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(RecordError, match=sentence):
        load(text)


def test_a_file_with_too_many_entries_is_refused() -> None:
    data = json.loads(full().to_json())
    data["chosen"] = data["chosen"][:1] * 501
    with pytest.raises(RecordError, match="up to 500 entries"):
        load(json.dumps(data))


@given(st.binary(max_size=300))
def test_no_file_breaks_the_app(raw: bytes) -> None:
    with pytest.raises(RecordError):
        load(raw)
