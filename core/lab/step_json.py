"""Engine steps as plain JSON, checked field by field when they come back."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, fields
from typing import Any, Final

from core.analytic.step_record import StepRecord

_KINDS: Final = ("prefill", "decode", "mixed")
_TYPES: Final = {item.name: item.type for item in fields(StepRecord)}
#: Fields that older records lack.
_LATER: Final = {item.name for item in fields(StepRecord) if item.default is not MISSING}


def step_to_json(step: StepRecord) -> dict[str, Any]:
    """One step as a plain object."""
    return asdict(step)


def step_from_json(data: object) -> StepRecord:
    """Build a step from an object that has a step's fields and no others, finite and not negative.

    Raises:
        ValueError: it does not; the text names the field.
    """
    if not isinstance(data, dict) or set(data) | _LATER != set(_TYPES):
        raise ValueError("a step must have exactly the fields of a step record")
    if data["kind"] not in _KINDS:
        raise ValueError("a step must be a prefill, a decode or both")
    for name, kind in _TYPES.items():
        if name != "kind" and name in data:
            _check_number(name, data[name], whole=kind == "int")
    return StepRecord(**data)


def _check_number(name: str, value: object, *, whole: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"a step's {name} must be a number")
    if not (math.isfinite(value) and 0 <= value < 1e18):
        raise ValueError(f"a step's {name} must be finite and not negative")
