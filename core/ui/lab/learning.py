"""The lab as a lesson: a prediction before a run, what came of it and why, a belief, and the way on.

A run is kept in the notebook when it starts, with its prediction or without one; its result and the
reason that the visitor gives are added to the same entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab.compare import compare
from core.lab.record import RunRecord
from core.lab.request import RunRequest
from core.lesson.lab_questions import Belief, lab_questions
from core.lesson.lesson_records import CONFIDENCES
from core.lesson.run_guess import RunGuess
from core.ui import page_links, print_view, prose
from core.ui.lab import files, runs
from core.ui.lesson import closing, learner
from core.ui.plain import plain

_OPTION: Final = "lab_guess"
_SURE: Final = "lab_guess_sure"
_REASON: Final = "lab_because"
_LAST: Final = "lab_guess_last"
_OPEN: Final = "lab_guess_open"
_SETTLED: Final = "lab_guess_settled"
#: Ratios outside are those of a run that was stopped by the machine.
_BOUNDS: Final = (1e-6, 1e6)


@dataclass(frozen=True, slots=True)
class _Open:
    """A run that is under way, and the time of the newest run with these settings before it."""

    request: RunRequest
    before: str


def ask() -> None:
    """Ask how the next run will come out against its arithmetic."""
    questions = lab_questions()
    texts = {option.id: option.text for option in questions.options}
    st.segmented_control(questions.question, list(texts), format_func=texts.__getitem__, key=_OPTION)
    st.segmented_control("How sure are you?", CONFIDENCES, key=_SURE)
    if said := str(st.session_state.get(_LAST, "")):
        prose.small(f"For the run before you said: {said}. The next run asks anew.")
    if sentence := learner.trouble(_OPTION):
        st.error(plain(sentence))


def note_start(request: RunRequest) -> None:
    """Keep a run that begins, with its prediction where one was made. Meant for the callback of Run."""
    option, sure = st.session_state.get(_OPTION), st.session_state.get(_SURE)
    known = lab_questions().option(str(option)) is not None and sure in CONFIDENCES
    guess = RunGuess(files.settings_words(request))
    if known:
        guess = replace(guess, option=str(option), confidence=str(sure))
    st.session_state[_LAST] = f"{guess.said}, {guess.confidence}" if known else ""
    before = runs.of(request)
    st.session_state[_OPEN] = _Open(request, "" if before is None else before.created_at)
    # The next run asks for a prediction of its own.
    st.session_state[_OPTION], st.session_state[_SURE], st.session_state[_REASON] = None, None, None
    try:
        learner.keep(learner.notebook().with_run(guess))
        learner.note_trouble(_OPTION, None)
    except UserError as full:
        learner.note_trouble(_OPTION, full)
        st.session_state.pop(_OPEN)


def settle(record: RunRecord) -> None:
    """Add a run's result to its entry in the notebook, once."""
    under_way: _Open | None = st.session_state.get(_OPEN)
    if under_way is None or record.request != under_way.request or record.created_at == under_way.before:
        return
    st.session_state.pop(_OPEN)
    compared, mine = compare(record), learner.notebook()
    ratio = min(max((compared.tpot or compared.ttft).ratio, _BOUNDS[0]), _BOUNDS[1])
    if not mine.runs or mine.runs[-1].ratio is not None:  # another notebook was opened meanwhile
        return
    limit = (record.prediction.decode or record.prediction.prefill).limit
    learner.keep(mine.with_last_run(replace(mine.runs[-1], ratio=ratio, limit=limit)))
    st.session_state[_SETTLED] = record.created_at


def tell(record: RunRecord) -> None:
    """What came of the prediction, and the question why; only for the run that was made last."""
    mine = learner.notebook()
    if not mine.runs or st.session_state.get(_SETTLED) != record.created_at:
        return
    guess = mine.runs[-1]
    noise = " The host was busy, so this proves little." if record.noisy else ""
    prose.paragraph(f"{guess.sentence}{noise}", strong="Your prediction.")
    reasons = {reason.limit: reason for reason in lab_questions().reasons}
    # The notebook owns the answer; the widget starts from it at every run.
    st.session_state[_REASON] = guess.reason or None
    st.radio(
        lab_questions().because,
        list(reasons),
        format_func=lambda limit: reasons[limit].text,
        key=_REASON,
        on_change=_give_reason,
    )
    if guess.reason in reasons:
        right = guess.reason == guess.limit
        verdict = "So says the arithmetic." if right else f"The arithmetic says: {reasons[guess.limit].text}"
        explanation = plain(f"{verdict} {reasons[guess.limit].explanation}")
        if right:
            st.success(explanation, icon=":material/check_circle:")
        else:
            st.warning(explanation, icon=":material/lightbulb:")


def _give_reason() -> None:
    limit, mine = st.session_state.get(_REASON), learner.notebook()
    if mine.runs and limit in {reason.limit for reason in lab_questions().reasons}:
        learner.keep(mine.with_last_run(replace(mine.runs[-1], reason=str(limit))))


def end() -> None:
    """What is often believed, what the notebook holds, and where to go on."""
    st.header("Often believed", anchor=False)
    for index, belief in enumerate(lab_questions().beliefs):
        st.markdown(f"**“{plain(belief.claim)}”**")
        part = print_view.fold("Why it is tempting, and what holds", key=f"lab_belief_{index}")
        if part.open:
            with part.place:
                _card(belief)
    st.divider()
    closing.kept()
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.page_link("pages/course.py", label="Before: the course map", icon=":material/map:")
        page_links.to_lesson("prefill_and_decode")
        page_links.to_lesson("kv_cache")


def _card(belief: Belief) -> None:
    for label, text in (
        ("Why it is tempting", belief.tempting),
        ("What speaks against it", belief.evidence),
        ("What holds", belief.rule),
    ):
        prose.paragraph(text, strong=f"{label}.")
