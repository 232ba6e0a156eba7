"""Texts with today's numbers: names in braces give way to what they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from core.lesson.amount import SCENARIO_FIELDS, LessonCase, Value
from core.lesson.option_name import option_name
from core.lesson.quantities.quantity import Quantity

_NAME: Final = re.compile(r"\{([a-z0-9_]+)\}")
#: Names beside quantities, scenario fields and settings.
RECORD_NAMES: Final = ("model_name", "machine_name")
#: A setting's name with this ending stands for the name behind its key: {later_name}.
NAME_ENDING: Final = "_name"


def names_in(text: str) -> Iterator[str]:
    """The names in braces."""
    return (match[1] for match in _NAME.finditer(text))


def fill(text: str, case: LessonCase, quantities: Mapping[str, Quantity]) -> str:
    """Replace each name in braces by its value for the case.

    >>> from core.lesson.catalogue_case import catalogue_case
    >>> fill("{model_name}, batch {batch}", catalogue_case({"batch": 1024}), {})
    'Llama 3.1 8B, batch 1,024'
    """
    return _NAME.sub(lambda match: _shown(match[1], case, quantities), text)


def _shown(name: str, case: LessonCase, quantities: Mapping[str, Quantity]) -> str:
    if name in case.settings:
        return _plain(case.settings[name])
    if name == "model_name":
        return case.model.name
    if name == "machine_name":
        return case.machine.name
    if name.removesuffix(NAME_ENDING) in case.settings:
        return option_name(case.word(name.removesuffix(NAME_ENDING)))
    if name in SCENARIO_FIELDS and name not in quantities:
        return _plain(getattr(case.scenario, name))
    return quantities[name](case).text


def _plain(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
