"""Reading saved JSON as data that may be wrong: every value is checked as it is taken out.

A file on disk may be cut short, edited, or made by another version. ``parse`` refuses what is not
plain finite JSON of a bounded size; ``Reader`` takes values out by name and says, in a sentence,
which one does not fit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, TypeVar

from core.errors import RecordError
from core.units import format_gb

_LONGEST_TEXT: Final = 200_000
_LONGEST_LIST: Final = 5_000

Item = TypeVar("Item")


def parse(text: str | bytes, what: str, limit_bytes: int) -> Reader:
    """Parse a JSON object.

    Raises:
        RecordError: it is too large, not JSON, not an object, or holds a number that is not finite.
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > limit_bytes:
        raise RecordError(
            f"{what} may have up to {format_gb(limit_bytes)}; this one has {format_gb(len(raw))}. Choose "
            "a file that this app saved."
        )
    if not raw.strip():
        raise RecordError(f"{what} must be whole JSON; this one is empty. Save it again from the app.")
    try:
        data = json.loads(raw, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"{what} must be whole JSON with finite numbers; this one is cut short or was changed ({error}). "
            "Save it again from the app."
        ) from error
    return Reader(data, what)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not finite")
    return value


class Reader:
    """A JSON object whose values are taken out by name, each checked.

    Args:
        data: what was parsed. what: its name in sentences, for example "A run record".
    """

    def __init__(self, data: object, what: str, path: str = "") -> None:
        self.what, self._path = what, path
        if not isinstance(data, dict):
            self.refuse(path or "its top", "an object")
        self.data: dict[str, Any] = data

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Say which value does not fit.

        Raises:
            RecordError: always.
        """
        raise RecordError(
            f"{self.what} must have {needed} at {name!r}; this one does not. It was made by another "
            "version or was changed: save it again from the app."
        )

    def number(self, name: str, low: float = 0.0, high: float = 1e18) -> float:
        """A finite number within bounds."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.refuse(self._at(name), f"a number from {low:g} to {high:g}")
        return float(value)

    def optional_number(self, name: str, low: float = 0.0, high: float = 1e18) -> float | None:
        """A number, or null where it is unknown."""
        return None if self._get(name) is None else self.number(name, low, high)

    def whole(self, name: str, low: int = 0, high: int = 10**18) -> int:
        """A whole number within bounds."""
        value = self._get(name)
        if type(value) is not int or not low <= value <= high:
            self.refuse(self._at(name), f"a whole number from {low:,} to {high:,}")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            self.refuse(self._at(name), "true or false")
        return value

    def text(self, name: str, choices: tuple[str, ...] = ()) -> str:
        """A text, one of the choices where there are any."""
        value = self._get(name)
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT or (choices and value not in choices):
            self.refuse(self._at(name), f"one of {', '.join(choices)}" if choices else "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            self.refuse(self._at(name), "a list of texts")
        return tuple(values)

    def numbers(self, name: str, low: float = 0.0, high: float = 1e18) -> tuple[float, ...]:
        """A list of finite numbers within bounds."""
        values = self._list(name)
        if not all(
            isinstance(v, int | float) and not isinstance(v, bool) and low <= v <= high for v in values
        ):
            self.refuse(self._at(name), f"a list of numbers from {low:g} to {high:g}")
        return tuple(float(value) for value in values)

    def inner(self, name: str) -> Reader:
        """A nested object."""
        return Reader(self._get(name), self.what, self._at(name))

    def optional(self, name: str, read: Callable[[Reader], Item]) -> Item | None:
        """A nested object as ``read`` makes it; None where it is null or, as in records of before, not there.

        >>> Reader({"link": None}, "A run").optional("link", lambda reader: reader.number("bytes"))
        """
        return None if self.data.get(name) is None else read(self.inner(name))

    def objects(self, name: str) -> tuple[Reader, ...]:
        """A list of objects."""
        return tuple(
            Reader(value, self.what, f"{self._at(name)}.{index}")
            for index, value in enumerate(self._list(name))
        )

    def number_map(self, name: str, low: float = 0.0, high: float = 1e18) -> dict[str, float]:
        """An object whose values are numbers."""
        inner = self.inner(name)
        return {key: inner.number(key, low, high) for key in inner}

    def __iter__(self) -> Iterator[str]:
        """The names in the object."""
        return iter(self.data)

    def _list(self, name: str) -> list[Any]:
        value = self._get(name)
        if not isinstance(value, list) or len(value) > _LONGEST_LIST:
            self.refuse(self._at(name), "a list")
        return value

    def _get(self, name: str) -> object:
        if name not in self.data:
            self.refuse(self._at(name), "a value")
        return self.data[name]

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def utc_time(reader: Reader, name: str) -> str:
    """Take an ISO time in UTC out of an object.

    Raises:
        RecordError: it is another thing.
    """
    text = reader.text(name)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reader.refuse(name, "an ISO time")
    if moment.tzinfo != UTC:
        reader.refuse(name, "an ISO time in UTC")
    return text
