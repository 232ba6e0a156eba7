"""Many requests at once: what a trace would do, at once; what it did, after Run; and both side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from core.lab.serve_record import ServeRecord
from core.lab.serve_request import ServeRequest
from core.lab.status import LabStatus
from core.ui import print_view, prose
from core.ui.lab import experiment, runs
from core.ui.lab.experiment import Notes
from core.ui.lab.many import controls, files, numbers, pictures
from core.ui.lab.many.settings import LINKED, experiment_of, way_name
from core.ui.lab.many.shown import Shown, predicted, served_way, simulated_way
from core.ui.lab.service import Lab
from core.ui.lab.watch import WAITING_S, await_ready, getting_ready, is_preparing
from core.ui.lesson import trial

_PREDICTED: Final = "lab_many_predicted"
Rows = tuple[tuple[float, ...], ...]


def show(lab: Lab) -> None:
    """Draw the controls, where it stands, the numbers, and the pictures."""
    LINKED.adopt_link()
    record, request, problem = _settings(lab)
    if problem:
        return
    rows = _rows(lab, request) if record is None else tuple(s.predicted_step_s for s in record.services)
    expected = [simulated_way(request, way, row) for way, row in zip(request.ways, rows, strict=True)]
    served = None if record is None else [served_way(record, service) for service in record.services]
    if record is not None:
        numbers.badges(record)
    st.fragment(pictures.show, key="serve_pictures")(expected, served, record)
    prose.small(_basis(expected))
    files.in_and_out(record)


def _settings(lab: Lab) -> tuple[ServeRecord | None, ServeRequest, str]:
    """The controls and what stands below them; the record that is shown, what it is of, and what is wrong."""
    status = lab.status("cpu")
    controls.draw()
    for note in LINKED.notes():
        st.warning(note, icon=":material/link:")
    with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
        controls.more(status)
        link = print_view.pop("Link", key="serve_link", icon=":material/link:")
        if link.open:
            with link.place:
                st.code(LINKED.address(part="many"), language=None, wrap_lines=True)
    if runs.job() is None and is_preparing(status):
        st.fragment(await_ready, key="serve_await", run_every=WAITING_S)(lab, "cpu", _preparing)
    loaded = files.loaded()
    if loaded is not None and runs.job() is None:
        files.loaded_card(loaded)
        return loaded, loaded.request, ""
    request = LINKED.current().request()
    problem = controls.problem(request, status)
    found: list[ServeRecord] = []
    asked = experiment_of(request)
    experiment.show(
        asked,
        lambda result: found.append(_record(lab, request, result)),
        key="serve",
        problem=problem,
        notes=Notes(
            nothing="What stands here is simulated and predicted. Press Run to serve it on this computer.",
            measured=lambda result: files.where(ServeRecord.from_json(result)),
            noisy=lambda result: trial.noise(ServeRecord.from_json(result).noisy),
        ),
    )
    return (found[0] if found else None), request, problem


def _preparing(status: LabStatus) -> None:
    """Why no time is predicted yet."""
    prose.small(getting_ready(status))


def _record(lab: Lab, request: ServeRequest, result: dict[str, Any]) -> ServeRecord:
    """A result with what was predicted before it was made."""
    record, rows = ServeRecord.from_json(result), _rows(lab, request)
    pairs = zip(record.services, rows, strict=True)
    return replace(record, services=tuple(replace(one, predicted_step_s=row) for one, row in pairs))


def _rows(lab: Lab, request: ServeRequest) -> Rows:
    """The predicted seconds of each way's steps; once it runs or ran, those of before.

    A prediction is made whenever the page shows settings without a result, so also right before Run.
    """
    key = experiment_of(request).key
    known: dict[str, Rows] = st.session_state.get(_PREDICTED, {})
    job = runs.job()
    begun = job is not None and job.experiment is not None and job.experiment.key == key
    if key in known and (begun or runs.result_of(experiment_of(request)) is not None):
        return known[key]
    calibration = lab.status("cpu").calibration
    rows = tuple(predicted(request, way, calibration) for way in request.ways)
    others = [(name, row) for name, row in known.items() if name != key][-runs.MOST_RUNS :]
    st.session_state[_PREDICTED] = dict([*others, (key, rows)])
    return rows


def _basis(expected: Sequence[Shown]) -> str:
    """What the numbers rest on."""
    first = expected[0]
    arrivals = first.request.arrivals()
    prompt = sum(arrival.prompt_tokens for arrival in arrivals)
    answer = sum(arrival.new_tokens for arrival in arrivals)
    words = [f"{len(arrivals)} requests with {prompt:,} prompt and {answer:,} answer tokens, from the seed."]
    guessing = [one for one in expected if one.request.guesses_of(one.way)]
    if guessing:
        names = " and ".join(way_name(one.way) for one in guessing)
        words.append(f"{names.capitalize()}: steps are counted as without guesses, and no time is predicted.")
    if any(one.steps_s for one in expected):
        words.append(
            "Predicted times sum the operator table over the simulated steps, at the speed of this "
            "computer's calibration; they are made before the run. They leave out the time between steps."
        )
    elif not guessing:
        words.append("No time is predicted, because this computer's speed is not known for these formats.")
    return " ".join(words)
