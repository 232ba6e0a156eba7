"""What the planner's link holds beside the scenario: the goal, and the scenario that is held.

Defaults are left out. A value that does not hold is left out too, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode

from core.analytic.planner_words import GOALS, Goal
from core.catalog.scenario import VERSION, Scenario, decode, encode
from core.ui.scenario import record
from core.ui.scenario.page_part import PagePart

_GOAL: Final = "goal"
_HELD: Final = "held"
_OWN: Final = frozenset({_GOAL, _HELD})
_DEFAULT: Final[Goal] = "tpot"
_Part = tuple[Goal, Scenario | None]
#: A held scenario is a dozen short values.
_LONGEST: Final = 2000
_MOST_NOTES: Final = 4


def goal() -> Goal:
    """What the visitor wants to improve."""
    return _PART.now()[0]


def held() -> Scenario | None:
    """The scenario that is held for a comparison; None where none is."""
    return _PART.now()[1]


def set_goal(goal: Goal) -> None:
    """Improve something else. Meant as a callback."""
    _PART.change((goal, held()))


def hold(scenario: Scenario | None) -> None:
    """Hold a scenario, or with None let it go. Meant as a callback."""
    _PART.change((goal(), scenario))


def notes() -> tuple[str, ...]:
    """What had to be repaired in the address; empty once something was changed."""
    return _PART.notes()


def adopt(*, comes_in: bool) -> None:
    """Bring goal and held scenario in step with the address, see ``PagePart.adopt``."""
    _PART.adopt(comes_in=comes_in)


def _written(now: _Part) -> dict[str, str]:
    goal, scenario = now
    params = {} if goal == _DEFAULT else {_GOAL: str(goal)}
    if scenario is not None:
        params[_HELD] = urlencode({"v": VERSION, **encode(scenario)})
    return params


def _read(params: Mapping[str, str]) -> tuple[_Part, tuple[str, ...]]:
    goal, goal_note = _read_goal(params.get(_GOAL))
    scenario, held_notes = _read_held(params.get(_HELD))
    return (goal, scenario), tuple(filter(None, (goal_note, *held_notes)))[:_MOST_NOTES]


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


_PART: Final[PagePart[_Part]] = PagePart("planner_link", _OWN, (_DEFAULT, None), _read, _written)
