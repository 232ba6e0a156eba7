"""What would help most: the goal to improve, and up to four changes, each with its effect and a click."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import streamlit as st

from core.analytic.planner import Lever, levers
from core.analytic.planner_words import GOALS, Goal
from core.ui.plain import plain
from core.ui.planner.found import Found
from core.ui.scenario import record
from core.units import significant

_GOAL: Final = "planner_goal"
_MOST_REMEMBERED: Final = 256


def draw(found: Found) -> None:
    """Draw the goal and the levers for it."""
    st.header("What would help most?", anchor=False)
    goal = st.segmented_control(
        "What to improve",
        list(GOALS),
        default="tpot",
        required=True,
        format_func=GOALS.__getitem__,
        key=_GOAL,
        persist_state="session",
    )
    offered = _remembered(_Question(found, goal if goal in GOALS else "tpot"))
    if not offered:
        st.caption(
            "A split model is not computed yet."
            if found.case.split
            else "No single change of batch, format, chip or prompt brings 2 % or more."
        )
    for number, lever in enumerate(offered):
        _row(lever, number)


def _row(lever: Lever, number: int) -> None:
    factor = "possible" if lever.effect is None else f"{significant(lever.effect)} ×"
    with st.container(horizontal=True, vertical_alignment="center", wrap=False):
        st.button(
            "Apply",
            key=f"planner_apply_{number}",
            help=f"Change the scenario: {plain(lever.label)}",
            on_click=record.use,
            args=(lever.after.case.scenario,),
        )
        st.markdown(f"**{plain(lever.label)}: {factor}.** {plain(lever.sentence)}")


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
