"""Flat dataclasses from JSON: known names only, and values of their types."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, TypeVar

from core.errors import RequestError

T = TypeVar("T")


def typed(kind: type[T], data: object, what: str) -> T:
    """Build a dataclass of numbers, texts, flags and tuples of whole numbers; each has a default.

    Args:
        kind: the dataclass; every field has a default.
        data: what was parsed.
        what: its name in sentences, for example "A trace".

    Raises:
        RequestError: it is not an object, has a name too many, or a value of another type.
    """
    if not isinstance(data, dict):
        raise RequestError(f"{what} must be an object; got {type(data).__name__}.")
    defaults: dict[str, Any] = asdict(kind())  # type: ignore[call-overload]
    values = {}
    for name, value in data.items():
        if name not in defaults:
            raise RequestError(f"{what} has no field {str(name)[:40]!r}; it has {', '.join(defaults)}.")
        values[name] = _typed(value, type(defaults[name]), f"{what} must have", name)
    return kind(**values)


def _typed(value: object, expected: type, what: str, name: str) -> object:
    if expected is tuple:
        if not isinstance(value, list | tuple) or not all(type(item) is int for item in value):
            raise RequestError(f"{what} a list of whole numbers at {name!r}; got {str(value)[:40]}.")
        return tuple(value)
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise RequestError(f"{what} {expected.__name__} at {name!r}; got {type(value).__name__}.")
    return value


def plain(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """A flat dataclass as a plain dict, tuples as lists."""
    values = ((item.name, getattr(record, item.name)) for item in fields(record))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}
