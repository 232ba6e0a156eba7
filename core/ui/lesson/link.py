"""What a lesson's link holds beside the scenario: the page's private settings and the exercise's seed.

Defaults are left out. A value that does not hold is replaced by the default, and that is said.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import streamlit as st

from core.catalog.accelerators import accelerators
from core.catalog.scenario import KEYS
from core.lesson.amount import SCENARIO_FIELDS, Value
from core.lesson.exercise import SEEDS, read_seed
from core.lesson.lesson import Lesson
from core.lesson.lesson_records import Control
from core.ui.scenario import address

SEED: Final = "seed"
#: Keys of private settings begin so; a scenario's key never does.
PREFIX: Final = "set_"
_SWITCH: Final = {"1": True, "0": False}
_PART: Final = re.compile(r"[a-z0-9_]{1,40}")
_OWN: Final = "lesson_own"
_SEEN: Final = "lesson_link_seen"
_NOTES: Final = "lesson_link_notes"
_MOST_NOTES: Final = 6
_SCENARIO_KEYS: Final = frozenset({"v", *KEYS.values()})


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """A lesson's private settings by name, and the seed of its exercises."""

    values: Mapping[str, Value]
    seed: int


def private_controls(lesson: Lesson) -> tuple[Control, ...]:
    """The controls whose value is no field of the scenario."""
    every = (*lesson.controls, *lesson.beside)
    return tuple(control for control in every if control.name not in SCENARIO_FIELDS)


def decode(params: Mapping[str, str], lesson: Lesson) -> tuple[OwnSettings, tuple[str, ...]]:
    """Read a lesson's own part of a link, with a sentence for each value that does not hold.

    >>> from core.lesson.lesson_file import lessons
    >>> decode({"set_cache": "0", "seed": "7"}, lessons()["kv_cache"])[0]
    OwnSettings(values={'cache': False}, seed=7)
    """
    values: dict[str, Value] = {}
    notes = []
    for control in private_controls(lesson):
        values[control.name], note = _read(control, params.get(PREFIX + control.name))
        notes.append(note)
    seed, note = read_seed(params.get(SEED))
    known = _SCENARIO_KEYS | {SEED} | {PREFIX + name for name in values}
    unknown = [
        f"The link has a setting {name[:40]!r} that this page does not know; it is ignored."
        for name in params
        if name not in known
    ]
    return OwnSettings(values, seed), tuple(filter(None, [*notes, note, *unknown]))[:_MOST_NOTES]


def encode(settings: OwnSettings, lesson: Lesson) -> dict[str, str]:
    """Write what differs from the defaults."""
    written = {
        PREFIX + control.name: _written(settings.values[control.name])
        for control in private_controls(lesson)
        if settings.values[control.name] != control.default
    }
    return {**written, **({SEED: str(settings.seed)} if settings.seed != SEEDS[0] else {})}


def adopt(lesson: Lesson, *, comes_in: bool) -> None:
    """Take the lesson's own part of the address where it changed: at first, and on going back.

    An address that says nothing, as after a click on the navigation, leaves the settings as they are.

    Args:
        lesson: whose page it is.
        comes_in: the visitor has just come to it.
    """
    params = dict(st.query_params.items())
    if st.session_state.get(_SEEN) == params and not comes_in:
        return
    st.session_state[_SEEN] = params
    settings, st.session_state[_NOTES] = decode(params, lesson)
    says_nothing = not any(map(_is_own, params))
    if comes_in and says_nothing and lesson.id in st.session_state.get(_OWN, {}):
        address.complete(encode(current(lesson), lesson))
    else:
        _keep(lesson, settings)


def current(lesson: Lesson) -> OwnSettings:
    """The settings and the seed as they stand."""
    known: dict[str, OwnSettings] = st.session_state.get(_OWN, {})
    return known.get(lesson.id) or decode({}, lesson)[0]


def notes() -> tuple[str, ...]:
    """What had to be repaired in the address; empty once something was changed."""
    return tuple(st.session_state.get(_NOTES, ()))


def change(lesson: Lesson, name: str, value: Value) -> None:
    """Change a private setting, and the address with it. Meant for callbacks."""
    now = current(lesson)
    _change(lesson, OwnSettings({**now.values, name: value}, now.seed))


def draw_seed(lesson: Lesson) -> None:
    """Draw other numbers for the exercises, and put their seed into the address. Meant as a callback."""
    low, high = SEEDS
    _change(lesson, OwnSettings(current(lesson).values, low + 1 + secrets.randbelow(high - low)))


def _change(lesson: Lesson, settings: OwnSettings) -> None:
    st.session_state[_NOTES] = ()
    _keep(lesson, settings)
    _write(lesson)


def _keep(lesson: Lesson, settings: OwnSettings) -> None:
    st.session_state[_OWN] = {**st.session_state.get(_OWN, {}), lesson.id: settings}


def _write(lesson: Lesson) -> None:
    address.step(encode(current(lesson), lesson), _is_own)
    st.session_state[_SEEN] = dict(st.query_params.items())


def is_part(name: str) -> bool:
    """Whether a text may name a part of a picture; whether the picture has it is another question."""
    return _PART.fullmatch(name) is not None


def _are_chips(text: str) -> bool:
    """Whether every key between the commas is a chip of the catalogue; nothing is an empty choice."""
    return not text or set(text.split(",")) <= set(accelerators())


def _is_own(name: str) -> bool:
    return name == SEED or name.startswith(PREFIX)


def _written(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _read(control: Control, text: str | None) -> tuple[Value, str]:
    if text is None:
        return control.default, ""
    value = _value(control, text)
    if value is not None:
        return value, ""
    return control.default, (
        f"The setting {control.label!r} cannot be {text[:40]!r}, as the link says, so "
        f"{_written(control.default)} is used."
    )


def _value(control: Control, text: str) -> Value | None:
    if control.kind == "switch":
        return _SWITCH.get(text)
    if control.kind == "choice":
        return text if text in control.options else None
    if control.kind == "part":  # whether today's model has it is for the picture to say
        return text if is_part(text) else None
    if control.kind == "chips":
        return text if _are_chips(text) else None
    whole = int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else -1
    return whole if control.low <= whole <= control.high else None
