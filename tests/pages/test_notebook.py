"""The notebook and the course map: what a visit holds, saved, loaded, and refused."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.notebook import Notebook, load
from core.lesson.prediction import predict_number, skip_prediction
from core.ui.plain import plain
from tests.pages.conftest import Open, settled, tables, words

pytestmark = pytest.mark.page


def filled() -> Notebook:
    """A visit with something of each kind, and hostile words in an answer."""
    lesson = lessons()["prefill_and_decode"]
    instance = draw(lesson, lesson.exercises[0], 5)
    wrong = instance.check("1 ms")
    right = instance.check(f"{instance.answer.value:.6g}")
    return (
        Notebook()
        .with_prediction(predict_number(lesson, 10.0, "certain"))
        .with_prediction(skip_prediction(lessons()["kv_cache"]))
        .with_choice(lesson, "because", 1)
        .with_attempt(instance, "![x](http://x) <script>", wrong)
        .with_attempt(instance, f"{instance.answer.value:.6g}", right)
    )


def open_notebook(open_app: Open, mine: Notebook | None = None) -> AppTest:
    app = open_app("notebook")
    if mine is not None:
        app.session_state["notebook"] = mine
        settled(app.run())
    return app


def upload(app: AppTest, content: bytes) -> AppTest:
    app.session_state["notebook_load_fold"] = True
    settled(app.run())
    return settled(app.file_uploader[0].upload("notebook.json", content).run())


def test_an_empty_notebook_says_how_it_fills_and_warns_of_nothing(open_app: Open) -> None:
    app = open_notebook(open_app)
    assert "Nothing is in it yet" in app.info[0].value
    assert not app.warning
    assert app.download_button[0].disabled


def test_everything_that_was_done_is_listed_and_hostile_words_stay_words(open_app: Open) -> None:
    app = open_notebook(open_app, filled())
    cells = [cell for table in tables(app) for row in table for cell in row]
    assert "2 Prefill and decode" in cells
    assert "10 ×" in cells
    assert "nothing; you asked to be shown" in cells
    assert "certain" in cells
    assert "![x](http://x) <script>" in cells
    assert plain(lessons()["prefill_and_decode"].because.options[1].text) in cells
    assert f"1 of {len(lessons())} pages done" in words(app)


def test_a_question_is_told_once_and_then_its_answers(open_app: Open) -> None:
    lesson = lessons()["prefill_and_decode"]
    first, other = draw(lesson, lesson.exercises[0], 5), draw(lesson, lesson.exercises[0], 6)
    mine = Notebook()
    for instance, typed in ((first, "1 ms"), (other, "2 ms"), (first, "3 ms")):
        mine = mine.with_attempt(instance, typed, instance.check(typed))
    (table,) = tables(open_notebook(open_app, mine))
    assert [row[1:4] for row in table[1:]] == [
        [first.question, "1", "1 ms"],
        ["", "2", "3 ms"],
        [other.question, "1", "2 ms"],
    ]


def test_unsaved_work_is_warned_of_until_it_is_saved(open_app: Open) -> None:
    app = open_notebook(open_app, filled())
    assert "a reload of the browser" in app.warning[0].value
    settled(app.download_button(key="notebook_save").click().run())
    assert not app.warning
    assert "Everything in it is in a file." in app.success[0].value


def test_a_saved_notebook_is_opened_again(open_app: Open) -> None:
    app = upload(open_notebook(open_app), filled().to_json().encode())
    assert "2 predictions, 1 choice, 2 answers" in words(app)
    assert not app.info
    settled(app.button(key="notebook_open").click().run())
    assert app.session_state["notebook"] == load(filled().to_json())
    assert not app.warning
    settled(app.switch_page("pages/prefill_and_decode.py").run())
    assert "You said 10 ×" in words(app)


def test_opening_a_file_says_what_would_be_lost(open_app: Open) -> None:
    app = upload(open_notebook(open_app, filled()), Notebook().to_json().encode())
    assert "What is not saved of the present one is lost" in words(app)
    assert app.session_state["notebook"] == filled()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            json.dumps({**json.loads(filled().to_json()), "version": 2}).encode(),
            "A notebook must be of version 1",
        ),
        (b"not json", "A notebook must be whole JSON"),
        (b"[]", "A notebook must have an object"),
        (b"{}", "A notebook must have"),
        (filled().to_json().encode()[:-40], "A notebook must"),
        (filled().to_json().replace('"certain"', '"<script>"').encode(), "A notebook must have one of"),
        (b"\xff\xfe", "A notebook must"),
        (b" " * 1_000_001, "A notebook may have up to"),
    ],
)
def test_a_file_that_is_no_notebook_is_one_sentence_and_nothing_is_lost(
    open_app: Open, content: bytes, sentence: str
) -> None:
    app = upload(open_notebook(open_app, filled()), content)
    assert len(app.error) == 1
    assert app.error[0].value.startswith(plain(sentence))
    assert app.session_state["notebook"] == filled()


def test_entries_of_a_page_that_is_not_known_are_shown_by_name(open_app: Open) -> None:
    text = filled().to_json().replace('"prefill_and_decode"', '"another_page"')
    app = open_notebook(open_app, load(text))
    cells = [cell for table in tables(app) for row in table for cell in row]
    assert "another_page" in cells


def test_the_map_shows_five_parts_what_exists_and_what_comes(open_app: Open) -> None:
    app = open_app("course")
    headers = [header.value for header in app.header]
    assert len([header for header in headers if "·" in header]) == 5
    labels = [item.proto.label for item in app.get("page_link")]
    assert {plain("2 Prefill and decode"), plain("6 KV cache")} <= set(labels)
    text = words(app)
    assert "24 Design review" in text
    assert text.count("Not begun.") == len(lessons())


def test_the_map_shows_how_far_one_is(open_app: Open) -> None:
    app = open_app("course")
    app.session_state["notebook"] = filled()
    settled(app.run())
    text = words(app)
    assert "Done." in text
    assert plain("Begun: predicted, no reason chosen, 0 of 1 exercises solved.") in text
