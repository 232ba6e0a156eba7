"""What the planner's link holds beside the scenario: the goal, and the scenario that is held.

Defaults are left out. A value that does not hold is left out too, and that is said.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from core.analytic.planner_words import GOALS, Goal
from core.catalog.scenario import VERSION, Scenario, decode, encode
from core.ui.scenario import address, record

_GOAL: Final = "goal"
_HELD: Final = "held"
_OWN: Final = frozenset({_GOAL, _HELD})
_NOW: Final = "planner_link"
_SEEN: Final = "planner_link_seen"
_NOTES: Final = "planner_link_notes"
_DEFAULT: Final[Goal] = "tpot"
#: A held scenario is a dozen short values.
_LONGEST: Final = 2000
_MOST_NOTES: Final = 4


def goal() -> Goal:
    """What the visitor wants to improve."""
    return _now()[0]


def held() -> Scenario | None:
    """The scenario that is held for a comparison; None where none is."""
    return _now()[1]


def set_goal(goal: Goal) -> None:
    """Improve something else. Meant as a callback."""
    _change(goal, held())


def hold(scenario: Scenario | None) -> None:
    """Hold a scenario, or with None let it go. Meant as a callback."""
    _change(goal(), scenario)


def notes() -> tuple[str, ...]:
    """What had to be repaired in the address; empty once something was changed."""
    return tuple(st.session_state.get(_NOTES, ()))


def adopt(*, comes_in: bool) -> None:
    """Bring goal and held scenario in step with the address, before the page draws anything.

    Args:
        comes_in: the visitor has just come to the page; an address that says nothing then keeps them.
    """
    params = {name: value for name, value in st.query_params.items() if name in _OWN}
    if not comes_in and params == st.session_state.get(_SEEN):
        return
    st.session_state[_SEEN] = params
    if comes_in and not params and _NOW in st.session_state:
        address.complete(_written())
        return
    goal, goal_note = _read_goal(params.get(_GOAL))
    scenario, held_notes = _read_held(params.get(_HELD))
    st.session_state[_NOW] = (goal, scenario)
    st.session_state[_NOTES] = tuple(filter(None, (goal_note, *held_notes)))[:_MOST_NOTES]


def _now() -> tuple[Goal, Scenario | None]:
    now: tuple[Goal, Scenario | None] = st.session_state.get(_NOW, (_DEFAULT, None))
    return now


def _change(goal: Goal, scenario: Scenario | None) -> None:
    st.session_state[_NOW], st.session_state[_NOTES] = (goal, scenario), ()
    mine = _written()
    st.session_state[_SEEN] = mine
    address.step(mine, _OWN.__contains__)


def _written() -> dict[str, str]:
    goal, scenario = _now()
    params = {} if goal == _DEFAULT else {_GOAL: str(goal)}
    if scenario is not None:
        params[_HELD] = urlencode({"v": VERSION, **encode(scenario)})
    return params


def _read_goal(text: str | None) -> tuple[Goal, str]:
    known = next((goal for goal in GOALS if goal == text), None)
    if text is None or known is not None:
        return known or _DEFAULT, ""
    return _DEFAULT, (
        f"The goal must be one of {', '.join(GOALS)}; the link says {text[:40]!r}, so {_DEFAULT} is used."
    )


def _read_held(text: str | None) -> tuple[Scenario | None, tuple[str, ...]]:
    if text is None:
        return None, ()
    if len(text) > _LONGEST:
        return None, ("The held scenario in the link is too long to be one, so none is held.",)
    decoded = decode(dict(parse_qsl(text)), record.models(), record.chips())
    return decoded.scenario, tuple(f"Held scenario: {note}" for note in decoded.notes)
