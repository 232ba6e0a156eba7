"""The notebook: what was predicted, chosen and answered in this visit, to be saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lesson.amount import Amount
from core.lesson.course import course
from core.lesson.exercise import draw
from core.lesson.lab_questions import lab_questions
from core.lesson.lesson_file import lessons
from core.lesson.notebook import Notebook, load
from core.lesson.notebook_entries import Attempt, Chosen
from core.lesson.prediction import Prediction
from core.lesson.run_guess import RunGuess
from core.ui import export, print_view
from core.ui.lesson import learner
from core.ui.plain import plain
from core.ui.table import Blank, Cell
from core.units import format_count

_LOAD: Final = "notebook_load"
_OPENED: Final = "notebook_opened"
_ATTEMPTS: Final = "notebook_attempts"
#: Sentences keep a width in which they can be read; on a phone the table then scrolls sideways.
_READABLE: Final = (
    f"<style>.st-key-{_ATTEMPTS} td:nth-child(2) {{ min-width: 16rem }} "
    f".st-key-{_ATTEMPTS} tbody th {{ min-width: 5rem }} "
    f".st-key-{_ATTEMPTS} td:nth-child(6) {{ min-width: 11rem }}</style>"
)
_KINDS: Final = {"because": "why it is so", "recall": "from an earlier page"}


def show() -> None:
    """Draw the notebook of this visit."""
    mine = learner.notebook()
    waiting = _keeping(mine)
    if waiting and mine.empty:
        return
    if mine.empty:
        st.info("Nothing is in it yet. Predictions and answers of the course's pages arrive by themselves.")
        st.page_link("pages/course.py", label="To the course map", icon=":material/map:")
    else:
        _entries(mine)


def _keeping(mine: Notebook) -> bool:
    """Save, load, and the warning while there is something to lose; whether a file waits to be opened."""
    if not learner.is_saved():
        st.warning(
            "This notebook is kept for this visit only: a reload of the browser, or a restart of the server, "
            "loses what is not saved. Save it to a file to keep it.",
            icon=":material/warning:",
        )
    elif not mine.empty:
        st.success("Everything in it is in a file.", icon=":material/check_circle:")
    if print_view.is_on():
        return False
    st.download_button(
        "Save the notebook",
        mine.to_json(),
        "notebook.json",
        "application/json",
        key="notebook_save",
        icon=":material/download:",
        type="primary",
        disabled=mine.empty,
        on_click=learner.mark_saved,
    )
    part = print_view.fold("Load a saved notebook", key="notebook_load_fold", icon=":material/upload:")
    if not part.open:
        return False
    with part.place:
        return _load_field()


def _load_field() -> bool:
    """Whether a file was chosen that can be opened."""
    turn = st.session_state.setdefault(_OPENED, 0)
    file = st.file_uploader(
        "A notebook file",
        type="json",
        key=f"{_LOAD}_{turn}",
        max_upload_size=1,
        help="A file that this page saved, here or on another computer; up to 1 MB.",
    )
    if file is None:
        return False
    try:
        found = load(file.getvalue())
    except UserError as fault:
        st.error(plain(str(fault)))
        return False
    lost = "" if learner.is_saved() else " What is not saved of the present one is lost."
    st.markdown(plain(f"The file holds {_size(found)}. Opening it replaces the present notebook.{lost}"))
    st.button("Open it", key="notebook_open", icon=":material/folder_open:", on_click=_open, args=(found,))
    return True


def _open(found: Notebook) -> None:
    learner.open_saved(found)
    st.session_state[_OPENED] += 1  # an empty upload field again


def _size(found: Notebook) -> str:
    counts = (
        (len(found.predictions), "prediction"),
        (len(found.chosen), "choice"),
        (len(found.attempts), "answer"),
        (len(found.runs), "run"),
    )
    return ", ".join(format_count(count, word) for count, word in counts)


def _entries(mine: Notebook) -> None:
    st.markdown(plain(course().progress(mine).sentence))
    if mine.predictions:
        st.header("Predictions", anchor=False)
        columns = ("page", "you said", "it is", "how sure", "how close")
        export.show_table(
            columns,
            [_prediction(p) for p in mine.predictions],
            key="notebook_predictions",
            file_name="predictions",
            label="Predictions",
        )
    if mine.chosen:
        st.header("Recall and because", anchor=False)
        export.show_table(
            ("page", "question", "you chose", "right"),
            [_chosen(entry) for entry in mine.chosen],
            key="notebook_chosen",
            file_name="choices",
            label="Recall and because",
        )
    if mine.attempts:
        _exercises(mine.attempts)
    if mine.runs:
        _runs(mine)


def _exercises(attempts: Sequence[Attempt]) -> None:
    st.header("Exercises", anchor=False)
    st.html(_READABLE)
    with st.container(key=_ATTEMPTS):
        export.show_table(
            ("page", "question", "try", "you typed", "right", "what was said"),
            _attempts(attempts),
            key=_ATTEMPTS,
            file_name="answers",
            label="Exercises",
        )


def _runs(mine: Notebook) -> None:
    st.header("Runs in the lab", anchor=False)
    export.show_table(
        ("settings", "you said", "how sure", "measured / predicted", "right", "the reason you gave"),
        [_run(guess) for guess in mine.runs],
        key="notebook_runs",
        file_name="lab-runs",
        label="Runs in the lab",
    )


def _run(guess: RunGuess) -> tuple[Cell, ...]:
    reason = next((r.text for r in lab_questions().reasons if r.limit == guess.reason), "none")
    right = Blank.DOES_NOT_APPLY if guess.right is None else _yes(right=guess.right)
    ratio = Blank.NOT_YET if guess.ratio is None else guess.ratio
    return (guess.settings, guess.said, guess.confidence or "not asked", ratio, right, reason)


def _prediction(made: Prediction) -> tuple[Cell, ...]:
    if made.kind == "skipped":
        said = "nothing; you asked to be shown"
    elif made.value is not None:
        said = Amount(made.value, made.unit).text
    else:
        said = _option_text(made.lesson, made.choice)
    true = _option_text(made.lesson, made.true_choice) if made.true_choice else ""
    true = true or Amount(made.true_value, made.unit).text
    return (_title(made.lesson), said, true, made.confidence or "not asked", made.sentence)


def _chosen(entry: Chosen) -> tuple[Cell, ...]:
    lesson = lessons().get(entry.lesson)
    choice = None
    if lesson is not None:
        recall = lesson.recall.choice if lesson.recall else None
        choice = lesson.because if entry.kind == "because" else recall
    known = choice is not None and entry.option < len(choice.options)
    text = choice.options[entry.option].text if choice is not None and known else f"option {entry.option + 1}"
    return (_title(entry.lesson), _KINDS[entry.kind], text, _yes(right=entry.right))


def _attempts(entries: Sequence[Attempt]) -> list[tuple[Cell, ...]]:
    """The answers by question, in the order in which the questions came; each is told at its first answer."""
    groups: dict[tuple[str, str, int], list[Attempt]] = {}
    for entry in entries:
        groups.setdefault((entry.lesson, entry.exercise, entry.seed), []).append(entry)
    return [
        (
            _title(entry.lesson),
            _question(entry) if number == 1 else "",
            number,
            entry.typed,
            _yes(right=entry.correct),
            entry.sentence,
        )
        for tries in groups.values()
        for number, entry in enumerate(tries, 1)
    ]


def _question(entry: Attempt) -> str:
    """The question as it was asked, its numbers drawn again; empty where this app does not know it."""
    lesson = lessons().get(entry.lesson)
    exercise = next((e for e in lesson.exercises if e.id == entry.exercise), None) if lesson else None
    return "" if lesson is None or exercise is None else draw(lesson, exercise, entry.seed).question


def _yes(*, right: bool) -> str:
    return "yes" if right else "no"


def _title(stem: str) -> str:
    """The page's number and title; a page that this app does not know keeps its name."""
    page = course().page(stem)
    return stem if page is None else f"{page.number} {page.title}"


def _option_text(stem: str, id: str) -> str:
    lesson = lessons().get(stem)
    options = lesson.prediction.options if lesson is not None else ()
    return next((option.text for option in options if option.id == id), id)
