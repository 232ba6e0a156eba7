"""What would help most: the goal to improve, and up to four changes, each with its effect and a click."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import streamlit as st

from core.analytic.planner import Lever, levers
from core.analytic.planner_words import GOALS, Goal
from core.ui import choice_list, prose
from core.ui.choice_list import Offer
from core.ui.planner import link
from core.ui.planner.found import Found
from core.ui.scenario import record
from core.units import significant

_GOAL: Final = "planner_goal"
_MOST_REMEMBERED: Final = 256


def draw(found: Found) -> None:
    """Draw the goal and the levers for it."""
    offered = _remembered(_Question(found, link.goal()))
    st.header("What would help most?", anchor=False)
    # The link owns the goal; the widget starts from it at every run.
    st.session_state[_GOAL] = link.goal()
    st.segmented_control(
        "What to improve",
        list(GOALS),
        required=True,
        format_func=GOALS.__getitem__,
        key=_GOAL,
        on_change=_choose_goal,
    )
    if not offered:
        prose.small("No single change of batch, format, chip, split or prompt brings 2 % or more.")
        return
    after = {lever.label: lever.after.case.scenario for lever in offered}
    choice_list.show(
        [_offer(lever) for lever in offered],
        "Apply",
        key="planner_levers",
        on_choose=lambda label: record.use(after[label]),
    )


def _choose_goal() -> None:
    goal = st.session_state.get(_GOAL)
    if goal in GOALS:
        link.set_goal(goal)


def _offer(lever: Lever) -> Offer:
    factor = "possible" if lever.effect is None else f"{significant(lever.effect)} ×"
    return Offer(lever.label, lever.label, factor, lever.sentence)


class _Question:
    """A plan and a goal as a key; plans of equal cases are the same object, for ``find`` remembers them."""

    __slots__ = ("found", "goal")

    def __init__(self, found: Found, goal: Goal) -> None:
        self.found, self.goal = found, goal

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Question) and self.found is other.found and self.goal == other.goal

    def __hash__(self) -> int:
        return hash((id(self.found), self.goal))


@lru_cache(maxsize=_MOST_REMEMBERED)
def _remembered(question: _Question) -> tuple[Lever, ...]:
    machines = record.catalogue_machines()
    return levers(question.found.planned, question.goal, machines)
