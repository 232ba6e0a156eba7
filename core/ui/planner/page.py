"""How the planner's page hangs together: one fragment, the answer first, what to do about it below."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.analytic.memory import footprint
from core.analytic.plan import plan
from core.analytic.planner import levers as find_levers
from core.analytic.planner_comparison import compare_plans
from core.analytic.planner_room import context_that_fits, users_that_fit
from core.analytic.planner_words import waiting_sentence
from core.catalog.formats import FORMATS
from core.errors import UserError
from core.ui import number_tiles, page_links, picture, print_view, source, worked_number
from core.ui.figures.answer_in_time import answer_in_time
from core.ui.figures.memory_bar import memory_bar
from core.ui.figures.roofline import Pass, roofline
from core.ui.plain import plain
from core.ui.planner import arithmetic, comparison, levers, numbers
from core.ui.planner.found import Found, find
from core.ui.scenario import bar, record

_OPEN: Final = "planner_open"

#: What a visitor sees, and the function that makes it.
SOURCES: Final = (
    ("every number of the plan", plan),
    ("what fills the memory", footprint),
    ("users that fit", users_that_fit),
    ("context that fits", context_that_fits),
    ("what would help most", find_levers),
    ("the comparison", compare_plans),
    ("the memory bar", memory_bar),
    ("one answer in time", answer_in_time),
    ("the roofline", roofline),
    ("the arithmetic", arithmetic.worked_number),
)


def show() -> None:
    """Draw the page and keep it going."""
    record.adopt_link("")  # the first page has no name in its address
    st.fragment(_plan, key="planner")()
    source.show(SOURCES, key="planner")


def _plan() -> None:
    """Everything that follows from the scenario."""
    bar.draw()
    case = record.case_of(record.current())
    try:
        found = find(case, record.chips()[case.scenario.accelerator])
    except UserError as mistake:
        st.error(plain(str(mistake)))
        return
    _answer(found)
    _pictures(found)
    levers.draw(found)
    comparison.draw(case)
    _notes(found)


def _answer(found: Found) -> None:
    """The numbers, what is wrong, the memory, and the arithmetic that was opened."""
    number_tiles.show(
        numbers.tiles(found),
        "The plan in numbers; each opens its arithmetic",
        _opened(),
        key="planner_numbers",
        on_choose=_choose,
    )
    _arithmetic(found)
    _limits(found)
    for violation in found.plan.violations:
        st.error(plain(violation))
    if found.plan.memory is not None:
        picture.show(memory_bar(found.plan.memory, found.machine.name), key="planner_memory")
    for column, name in zip(st.columns(3), ("batch", "input_tokens", "output_tokens"), strict=True):
        with column:
            bar.slide(name)


def _opened() -> str:
    name = str(st.session_state.get(_OPEN, ""))
    return name if name in numbers.LESSON_OF else ""


def _choose(name: str) -> None:
    st.session_state[_OPEN] = "" if st.session_state.get(_OPEN) == name else name


def _arithmetic(found: Found) -> None:
    names = list(numbers.LESSON_OF) if print_view.is_on() else [_opened()]
    for name in filter(None, names):
        with st.container(border=True):
            try:
                worked_number.show(arithmetic.worked_number(found, name), key=f"planner_worked_{name}")
            except UserError as gap:
                st.error(plain(str(gap)))
            page_links.to_lesson(numbers.LESSON_OF[name])


def _pictures(found: Found) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        if found.plan.ttft_s is not None:
            output = found.case.scenario.output_tokens
            picture.show(answer_in_time(found.plan.ttft_s, found.plan.tpot_s, output), key="planner_time")
    with right:
        if passes := _passes(found):
            compute = FORMATS[found.case.scenario.weights].compute
            peak = found.machine.peak_flops_per_s[compute]
            picture.show(
                roofline(passes, peak, found.machine.bandwidth_bytes_per_s, compute), key="planner_roof"
            )


def _limits(found: Found) -> None:
    """What each pass waits for."""
    costs = {"Decode": found.plan.decode, "Prefill": found.plan.prefill}
    weights = found.case.scenario.weights
    sentences = [
        f"- {plain(waiting_sentence(name, cost, found.machine, weights))}"
        for name, cost in costs.items()
        if cost is not None and cost.limit is not None
    ]
    if sentences:
        st.markdown("\n".join(sentences))


def _passes(found: Found) -> list[Pass]:
    costs = {"prefill": found.plan.prefill, "decode": found.plan.decode}
    return [
        Pass(name, cost.flops, cost.bytes, cost.time_s)
        for name, cost in costs.items()
        if cost is not None and cost.time_s is not None
    ]


def _notes(found: Found) -> None:
    part = print_view.fold("What these numbers mean", key="planner_notes", icon=":material/info:")
    if part.open:
        with part.place:
            st.markdown("\n".join(f"- {plain(note)}" for note in found.plan.notes))
