"""The pictures of a trace: requests by time, the cache over time, and the block table in a step of choice.

Drawn in a part of the page of its own, so that another step redraws nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from core.lab.serve_record import ServeRecord
from core.simulate.waste import fullest
from core.ui import picture, print_view
from core.ui.figures.cache_over_time import cache_over_time
from core.ui.figures.page_tables import page_tables
from core.ui.figures.request_gantt import request_gantt
from core.ui.lab.many import numbers
from core.ui.lab.many.shown import Axis, Shown
from core.ui.lesson.serving_scenes import moment

_AXES: Final[dict[Axis, str]] = {"steps": "in steps", "time": "in time"}


def show(expected: Sequence[Shown], served: Sequence[Shown] | None, record: ServeRecord | None) -> None:
    """Draw each way in a column of its own, then the tables.

    Args:
        expected: each way as simulated and predicted.
        served: each way as it was served; None before that.
        record: what was served; None before that.
    """
    shown = served or expected
    by = _axis(shown)
    for place, column in enumerate(st.columns(len(shown), gap="medium")):
        with column:
            _way(expected[place], shown[place], by, f"serve_way_{place}")
    part = print_view.fold("Times of each request", key="serve_requests_fold", icon=":material/table:")
    if part.open:
        with part.place:
            numbers.requests_table(shown, record)
    for place, one in enumerate(shown):
        label = f"Steps, {one.name}"
        part = print_view.fold(label, key=f"serve_steps_fold_{place}", icon=":material/table:")
        if part.open:
            with part.place:
                numbers.steps_table(one, f"serve_steps_{place}")


def _axis(shown: Sequence[Shown]) -> Axis:
    if not any(one.steps_s for one in shown):
        return "steps"
    chosen = st.segmented_control(
        "Pictures",
        list(_AXES),
        default="steps",
        required=True,
        format_func=_AXES.__getitem__,
        key="serve_axis",
        persist_state="session",
    )
    return "time" if chosen == "time" else "steps"


def _way(expected: Shown, shown: Shown, by: Axis, key: str) -> None:
    gantt, middle = st.container(), st.container()
    place = _place(shown, key)
    now, axis = shown.steps[place].now, shown.axis(by)
    with gantt:
        drawn = request_gantt(shown.lanes(), axis, shown.name.capitalize(), shown.source, now)
        picture.show(drawn, key=f"{key}_gantt")
    with middle:
        numbers.headline(expected, shown if shown.measured else None)
        drawn = cache_over_time(shown.used(), shown.size, axis, shown.source, now)
        picture.show(drawn, key=f"{key}_cache")
    tables = page_tables(moment(shown.steps, shown.request, shown.way, place), shown.source)
    held, all_blocks = shown.counts[place].pages_used, shown.size.blocks
    title = f"The cache in step {now + 1}: {held:,} of {all_blocks:,} blocks held"
    picture.show(replace(tables, title=title), key=f"{key}_tables")


def _place(shown: Shown, key: str) -> int:
    """The step that the block table shows, at first the one in which most is held."""
    if len(shown.steps) == 1:
        return 0
    name = f"{key}_step"
    known = st.session_state.get(name)
    numbers_of = [step.now + 1 for step in shown.steps]
    if known not in numbers_of:
        st.session_state[name] = numbers_of[fullest(shown.steps)]
    chosen = st.select_slider(
        f"Step of the block table, {shown.name}",
        numbers_of,
        key=name,
        help="Grey in the pictures. At first the step in which most blocks are held.",
    )
    return numbers_of.index(int(chosen))
