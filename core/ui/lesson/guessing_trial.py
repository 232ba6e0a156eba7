"""The measured beat of page 17: one text without and with guesses, beside simulator and formula."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from core.errors import UserError
from core.lab.speculate_record import SpeculateRecord
from core.lab.speculate_request import SpeculateRequest
from core.lesson.guessing_trial import equality, request_of, shown_rounds, steps_agree
from core.lesson.lesson import Lesson
from core.ui import picture, print_view, side_by_side
from core.ui.figures.drafted_rounds import drafted_rounds
from core.ui.lab import experiment, files
from core.ui.lab.experiment import Notes
from core.ui.lesson import link, measured_beat, trial
from core.ui.plain import plain
from core.ui.side_by_side import Quantity
from core.units import format_seconds, significant


def show(lesson: Lesson) -> None:
    """Draw the beat: what to try, where it stands, and what came out."""
    measured_beat.heading(lesson)
    values = link.current(lesson).values
    first, *others = lesson.beside
    trial.choice(lesson, first)
    for column, control in zip(st.columns(len(others)), others, strict=True):
        with column:
            trial.choice(lesson, control)
    request = request_of(values)
    experiment.show(
        request.experiment("one text, without and with guesses"),
        partial(_result, lesson, request),
        key=lesson.id,
        notes=Notes(
            nothing="Press Run to write the text on this server, with the guesses a round set above.",
            measured=_where,
            noisy=_noise,
        ),
    )


def _where(result: dict[str, Any]) -> str:
    try:
        record = SpeculateRecord.from_json(result)
    except UserError:  # said where the result would stand
        return ""
    device, writings = record.host.device_name or record.host.cpu, len(record.plain.answer_s)
    often = "once" if writings == 1 else f"{writings} times"
    return (
        f"{files.clock(record.created_at)}, {record.model_name}, on {device}, {record.host.threads} threads, "
        f"each text {often}."
    )


def _noise(result: dict[str, Any]) -> str:
    try:
        reasons = SpeculateRecord.from_json(result).noisy
    except UserError:
        return ""
    return f"The times are not to be trusted: {', '.join(reasons)}." if reasons else ""


def _result(lesson: Lesson, request: SpeculateRequest, result: dict[str, Any]) -> None:
    record = SpeculateRecord.from_json(result)
    trial.check("Equal outputs" if request.is_greedy else "Outputs", equality(record))
    trial.check("Steps", steps_agree(record))
    side_by_side.show(_lines(record))
    st.caption(plain(_costs(record)))
    shown = shown_rounds(record)
    drawn = replace(
        drafted_rounds(shown),
        title=f"The first {len(shown.rounds)} of {len(record.guessed.decode_steps)} rounds",
        look_at="A row without guesses is a step that found nothing to guess.",
    )
    picture.show(drawn, key=f"{lesson.id}_trial")
    part = print_view.fold("What the model wrote", key=f"{lesson.id}_texts")
    if part.open:
        with part.place:
            for words, text in (("Without guesses", record.plain), ("With guesses", record.guessed)):
                st.caption(plain(f"{words}: {len(text.token_ids)} tokens in {len(text.steps)} steps"))
                st.markdown(plain(text.text) or "The model wrote nothing.")


def _lines(record: SpeculateRecord) -> list[Quantity]:
    """Steps, tokens a step and speed-up: what simulator and formula say, and what was counted and timed."""
    tokens, gain = record.formula_tokens, record.formula_speed_up
    measured, low, high = record.speed_up
    steps = len(record.guessed.steps)
    return [
        Quantity(
            name="Steps",
            meaning=f"for {len(record.guessed.token_ids)} tokens; without guesses {len(record.plain.steps)}",
            predicted=str(len(record.rounds)),
            measured=str(steps),
            ratio=steps / len(record.rounds),
        ),
        Quantity(
            name="Tokens a step",
            meaning="by the formula with the acceptance here",
            predicted="" if tokens is None else significant(tokens),
            measured=significant(record.tokens_a_step),
            ratio=None if tokens is None else record.tokens_a_step / tokens,
        ),
        Quantity(
            name="Speed-up",
            meaning="by the formula with the acceptance and the costs here",
            predicted="" if gain is None else f"{significant(gain)} ×",
            measured=f"{significant(measured)} ×",
            ratio=None if gain is None else measured / gain,
            spread=None if gain is None or low == high else (low / gain, high / gain),
        ),
    ]


def _costs(record: SpeculateRecord) -> str:
    """What the formula was given, in a sentence."""
    costs, acceptance = record.costs, record.acceptance
    if costs is None or acceptance is None:
        return "Nothing was found to guess, so there is no acceptance, and every step was a plain one."
    return (
        f"{record.accepted} of {record.drafted} guesses held. Of those that were looked at, "
        f"{acceptance:.0%} were right. A plain step took {format_seconds(costs.step_s)}, a check "
        f"{format_seconds(costs.verify * costs.step_s)}, which is {significant(costs.verify)} steps, and a "
        f"guess {format_seconds(costs.draft * costs.step_s)}; these are medians."
    )
