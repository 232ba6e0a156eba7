"""Settings in a link, field by field: what a part of the lab keeps in the address, and how it is read back.

Defaults are left out; a value outside its limits is clamped, an unknown name is replaced, and both are said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

T = TypeVar("T")
#: The two values of a switch in a link.
SWITCH: Final = ("0", "1")
_LONGEST_NUMBER: Final = 24
_MOST_NOTES: Final = 8


@dataclass(frozen=True, slots=True)
class LinkField:
    """One setting in a link.

    Attributes:
        key: its name there, without the prefix. label: what sentences call it.
        choices: the names it may have. limits: smallest and largest value, where it is a number.
    """

    key: str
    label: str
    choices: Collection[str] = ()
    limits: tuple[float, float] | None = None


Fields = Mapping[str, LinkField]


def encode(record: T, default: T, fields: Fields, prefix: str) -> dict[str, str]:
    """Write the settings that differ from the defaults as query parameters."""
    return {
        prefix + field.key: _written(getattr(record, name))
        for name, field in fields.items()
        if getattr(record, name) != getattr(default, name)
    }


def decode(params: Mapping[str, str], default: T, fields: Fields, prefix: str) -> tuple[T, tuple[str, ...]]:
    """Read settings from query parameters, with a sentence for each value that had to be repaired.

    Args:
        params: the link's parameters; keys without the prefix belong to others.
        default: what holds where the link says nothing.
        fields: by the name of the record's field.
        prefix: of the keys.
    """
    values: dict[str, Any] = {}
    notes: list[str] = []
    for name, field in fields.items():
        text = params.get(prefix + field.key)
        if text is not None:
            values[name], note = _read(field, text, getattr(default, name))
            notes += [note] if note else []
    known = {prefix + field.key for field in fields.values()}
    notes += [
        f"The link has a setting {name[:40]!r} that this page does not know; it is ignored."
        for name in params
        if name.startswith(prefix) and name not in known
    ]
    return replace(default, **values), tuple(notes[:_MOST_NOTES])  # type: ignore[type-var]


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _read(field: LinkField, text: str, default: Any) -> tuple[Any, str]:  # noqa: ANN401 - of any field
    if field.limits is not None:
        return _number(field.label, text, default, field.limits)
    if text not in field.choices:
        shown = _written(default)
        sentence = f"The {field.label} {text[:40]!r} in the link is not known here, so {shown} is used."
        return default, sentence
    return (text == "1") if isinstance(default, bool) else text, ""


def _number(label: str, text: str, default: float, limits: tuple[float, float]) -> tuple[float, str]:
    low, high = limits
    whole = isinstance(default, int)
    try:
        value = float(text) if len(text) <= _LONGEST_NUMBER else float("nan")
        value = int(text) if whole and value == value else value  # noqa: PLR0124 - false for a NaN
    except (ValueError, OverflowError):
        value = float("nan")
    if value != value:  # noqa: PLR0124
        kind = "whole number" if whole else "number"
        return default, f"{label} must be a {kind}; the link says {text[:40]!r}, so {default:,} is used."
    clamped = min(max(value, type(default)(low)), type(default)(high))
    if clamped == value:
        return value, ""
    return clamped, (
        f"{label} must be from {low:,} to {high:,}; the link says {value:,}, so {clamped:,} is used."
    )
