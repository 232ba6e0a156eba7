"""An experiment on a page: where it stands, a way to start and to stop it, and what came out of it.

Drawn in the body of a page, not inside a fragment: while something is under way this part alone is
redrawn on a timer, and as it ends the page is drawn once. The job is the visit's, as a run is: it is still
there after a rerun, on another page and, with ``measuring.recognise`` or the lab's own, after a reload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.errors import UserError
from core.lab.experiment import Experiment
from core.ui import print_view
from core.ui.lab import runs, service
from core.ui.lab.watch import period_s, watch
from core.ui.plain import plain
from core.ui.state_card import State, state_card

Draw = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Notes:
    """What the card says where nothing is under way.

    Attributes:
        nothing: before the first run. measured: of a finished result, one sentence.
        recorded: of the result that ships with the app, one sentence.
        noisy: why a finished result is not to be trusted; empty where it is.
    """

    nothing: str = "Press Run to do this on this server."
    measured: Callable[[dict[str, Any]], str] = lambda _: "Done on this server."
    recorded: Callable[[dict[str, Any]], str] = lambda _: "Press Run for this server's own numbers."
    noisy: Callable[[dict[str, Any]], str] = lambda _: ""


_NOTES = Notes()


def show(
    experiment: Experiment,
    draw: Draw,
    *,
    key: str,
    problem: str = "",
    recorded: dict[str, Any] | None = None,
    notes: Notes = _NOTES,
    device: str = "cpu",
) -> None:
    """Draw the state it is in, its buttons, and its result.

    Args:
        experiment: what to do, with the settings of now; a result of other settings is not shown.
        draw: draws a finished result; a ``UserError`` that it or the notes raise is shown as its sentence.
        key: of the widgets.
        problem: why it cannot be run so, as a sentence; empty where it can.
        recorded: the result of a real run that ships with the app, for settings never run here. While
            something is under way the result of before, or this one, stays.
        notes: the sentences.
        device: where it runs.
    """
    result = runs.result_of(experiment)
    shown = None if problem else result or recorded
    if runs.job() is not None:
        _under_way(experiment, key, device)
        _draw(shown, draw)
        return
    try:
        _at_rest(experiment, result, recorded, notes, problem)
    except UserError as fault:  # the result cannot be read
        state_card("failed", str(fault))
        shown = None
    if not print_view.is_on():
        _run_button(experiment, key, device, "Run" if result is None else "Run again", bool(problem))
    _draw(shown, draw)


def _draw(shown: dict[str, Any] | None, draw: Draw) -> None:
    if shown is not None:
        try:
            draw(shown)
        except UserError as fault:
            st.error(plain(str(fault)))


def _run_button(experiment: Experiment, key: str, device: str, label: str, stuck: bool) -> None:
    st.button(
        label,
        icon=":material/play_arrow:",
        key=f"{key}_run",
        disabled=stuck,
        help="Runs in a process of its own on this server, one visitor after the other.",
        on_click=_start,
        args=(experiment, device),
    )


def _start(experiment: Experiment, device: str) -> None:
    runs.start_experiment(service.lab(), service.visits(), experiment, device)
    runs.just_started()  # the lab page's own signal; here the whole page is drawn anyway


def _cancel() -> None:
    if (job := runs.job()) is not None:
        runs.cancel(service.lab(), job.id)


def _under_way(experiment: Experiment, key: str, device: str) -> None:
    """What goes on now, drawn on a timer, and a way to stop it."""
    st.caption(plain(_which(experiment)))
    lab = service.lab()
    period = period_s(lab, lab.status(device))
    if period is not None:
        st.fragment(watch, key=f"{key}_watch", run_every=period)(lab, device, period)
    st.button("Cancel", icon=":material/stop:", key=f"{key}_cancel", on_click=_cancel)


def _which(experiment: Experiment) -> str:
    job = runs.job()
    now = job.experiment if job is not None else None
    if now is None:
        return "Another run of yours in the lab is under way. This page's can start after it."
    if now.key == experiment.key:
        return f"Under way: {experiment.title}."
    return f"Under way: {now.title}, with other settings than are shown here. This one can start after it."


def _at_rest(
    experiment: Experiment,
    result: dict[str, Any] | None,
    recorded: dict[str, Any] | None,
    notes: Notes,
    problem: str,
) -> None:
    if sentence := problem or runs.experiment_trouble(experiment):
        state_card("failed", sentence)
    elif result is not None:
        noisy = notes.noisy(result)
        state: State = "noisy" if noisy else "measured"
        state_card(state, f"{notes.measured(result)} {noisy}".strip())
    elif recorded is not None:
        state_card("recorded", notes.recorded(recorded))
    else:
        state_card("nothing", notes.nothing)
