"""How the planner's page hangs together: one fragment, the answer first, what to do about it below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st

from core.analytic.constraints import nearest_plans
from core.analytic.memory import footprint
from core.analytic.plan import plan
from core.analytic.plan_on_chips import plan_on_chips
from core.analytic.plan_value import value_of
from core.analytic.planner import levers as find_levers
from core.analytic.planner_comparison import compare_plans
from core.analytic.planner_room import context_that_fits, users_that_fit
from core.analytic.planner_words import waiting_sentence
from core.analytic.roofline import RoofMark
from core.catalog.formats import STORAGE_FORMATS
from core.errors import UserError
from core.ui import number_tiles, page_links, picture, print_view, prose, source, worked_number
from core.ui.figures.answer_in_time import answer_in_time
from core.ui.figures.memory_bar import memory_bar
from core.ui.figures.roofline import roofline
from core.ui.picture import Picture
from core.ui.plain import plain
from core.ui.planner import arithmetic, comparison, levers, link, money, nearest, numbers, ranges
from core.ui.planner.found import Found, find
from core.ui.scenario import bar, record
from core.ui.turns import in_turn

_OPEN: Final = "planner_open"

#: What a visitor sees, and the function that makes it.
SOURCES: Final = (
    ("every number of a plan on one chip", plan),
    ("every number of a split plan", plan_on_chips),
    ("plans that work where one does not", nearest_plans),
    ("what fills the memory", footprint),
    ("users that fit", users_that_fit),
    ("context that fits", context_that_fits),
    ("ranges, cost and energy", value_of),
    ("what would help most", find_levers),
    ("the comparison", compare_plans),
    ("the memory bar", memory_bar),
    ("one answer in time", answer_in_time),
    ("the roofline", roofline),
    ("the arithmetic", arithmetic.worked_number),
)


def show() -> None:
    """Draw the page and keep it going."""
    record.enter("planner")
    link.adopt(comes_in=record.comes_in())
    record.adopt_link("planner")
    st.fragment(in_turn(_plan), key="planner")()
    source.show(SOURCES, key="planner")


def _plan() -> None:
    """Everything that follows from the scenario."""
    case = record.case_of(record.current())
    try:
        # Computed before anything is drawn: what is sent in one go is drawn by the browser in one go.
        found = find(case, record.chips()[case.scenario.accelerator])
        pictures = _Pictures.of(found)
    except UserError as mistake:
        bar.draw()
        st.error(plain(str(mistake)))
        return
    bar.draw()
    _repaired()
    _answer(found, pictures)
    _times(pictures)
    money.draw(found)
    levers.draw(found)
    comparison.draw(case)
    _notes(found)


@dataclass(frozen=True, slots=True)
class _Pictures:
    """The pictures of a plan; None where it has nothing to draw."""

    memory: Picture | None
    time: Picture | None
    roof: Picture | None

    @classmethod
    def of(cls, found: Found) -> _Pictures:
        plan, scenario = found.plan, found.case.scenario
        compute = STORAGE_FORMATS[scenario.weights].compute
        passes, bandwidth = _passes(found), found.machine.bandwidth_bytes_per_s
        return cls(
            None if plan.memory is None else memory_bar(plan.memory, found.machine.name),
            None if plan.ttft_s is None else answer_in_time(plan.ttft_s, plan.tpot_s, scenario.output_tokens),
            roofline(passes, found.machine.peak_flops_per_s[compute], bandwidth, compute) if passes else None,
        )


def _repaired() -> None:
    for note in link.notes():
        st.warning(plain(note), icon=":material/link:")


def _answer(found: Found, pictures: _Pictures) -> None:
    """The numbers, what is wrong, the memory, and the arithmetic that was opened."""
    number_tiles.show(
        numbers.tiles(found),
        "The plan in numbers; each opens its arithmetic",
        _opened(),
        key="planner_numbers",
        on_choose=_choose,
    )
    _arithmetic(found)
    if said := ranges.sentence(ranges.value(found), found.case.scenario.batch):
        prose.small(said)
    _limits(found)
    if said := numbers.engine_sentence(found):
        st.warning(plain(said), icon=":material/warning:")
    for violation in found.plan.violations:
        st.error(plain(violation))
    nearest.draw(found)
    if found.case.split:
        page_links.to_lesson("parallelism")
    if pictures.memory is not None:
        picture.show(pictures.memory, key="planner_memory")
    # Side by side in one container: columns would be four, each of which the browser draws anew.
    with st.container(horizontal=True):
        for name in ("batch", "input_tokens", "output_tokens"):
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


def _times(pictures: _Pictures) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        if pictures.time is not None:
            picture.show(pictures.time, key="planner_time")
    with right:
        if pictures.roof is not None:
            picture.show(pictures.roof, key="planner_roof")


def _limits(found: Found) -> None:
    """What each pass waits for."""
    costs = {"Decode": found.plan.decode, "Prefill": found.plan.prefill}
    weights = found.case.scenario.weights
    prose.bullets(
        [
            waiting_sentence(name, cost, found.machine, weights)
            for name, cost in costs.items()
            if cost is not None and cost.limit is not None
        ]
    )


def _passes(found: Found) -> list[RoofMark]:
    """The passes under the roof of one chip: of a split model its share."""
    costs = {"prefill": found.plan.prefill, "decode": found.plan.decode}
    return [
        RoofMark(name, cost.flops / found.share, cost.bytes / found.share, cost.time_s)
        for name, cost in costs.items()
        if cost is not None and cost.time_s is not None
    ]


def _notes(found: Found) -> None:
    part = print_view.fold("What these numbers mean", key="planner_notes", icon=":material/info:")
    if part.open:
        with part.place:
            prose.bullets(found.plan.notes)
