"""A table of a lesson file whose values are taken out by name, each checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn


class LessonFileError(Exception):
    """A lesson file that does not hold a lesson; the text says where and what is needed."""


class LessonTable:
    """A TOML table that knows where it stands, and what of it was not asked for.

    Args:
        data: what was parsed. where: for messages, for example "kv_cache.toml: prediction".
    """

    def __init__(self, data: object, where: str) -> None:
        self._where = where
        self._taken: set[str] = set()
        if not isinstance(data, dict):
            self.refuse("", "a table")
        self.data: dict[str, Any] = data

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Say which value does not fit.

        Raises:
            LessonFileError: always.
        """
        at = f" at {name!r}" if name else ""
        raise LessonFileError(f"{self._where} must have {needed}{at}.")

    def has(self, name: str) -> bool:
        """Whether a name is there."""
        return name in self.data

    def text(self, name: str, default: str | None = None) -> str:
        """A text that is not empty, or the default."""
        value = self._get(name, default)
        if not isinstance(value, str) or (not value.strip() and default is None):
            self.refuse(name, "a text")
        return " ".join(value.split())

    def lines(self, name: str) -> str:
        """A text whose line breaks matter."""
        value = self._get(name)
        if not isinstance(value, str) or not value.strip():
            self.refuse(name, "lines of text")
        return value.strip()

    def one_of(self, name: str, choices: Mapping[str, object] | tuple[str, ...]) -> str:
        """A text that is one of the choices."""
        value = self.text(name)
        if value not in choices:
            self.refuse(name, f"one of {', '.join(choices)}, not {value!r},")
        return value

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A number within bounds."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.refuse(name, f"a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number within bounds."""
        value = self._get(name)
        if type(value) is not int or not low <= value <= high:
            self.refuse(name, f"a whole number from {low:,} to {high:,}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false where it is not there."""
        value = self._get(name, default=False)
        if not isinstance(value, bool):
            self.refuse(name, "true or false")
        return value

    def texts(self, name: str, least: int = 1) -> tuple[str, ...]:
        """A list of texts."""
        values = self._get(name, [] if least == 0 else None)
        if not isinstance(values, list) or len(values) < least or not all(isinstance(v, str) for v in values):
            self.refuse(name, f"a list of {least} or more texts")
        return tuple(" ".join(value.split()) for value in values)

    def value(self, name: str) -> int | float | str:
        """A number, a text or true or false."""
        found = self._get(name)
        if not isinstance(found, int | float | str):
            self.refuse(name, "a number or a text")
        return found

    def values(self, name: str) -> dict[str, int | float | str]:
        """A table of numbers and texts; empty where it is not there."""
        if not self.has(name):
            return {}
        inner = self.inner(name)
        return {key: inner.value(key) for key in inner.data}

    def inner(self, name: str) -> LessonTable:
        """A nested table."""
        return LessonTable(self._get(name), f"{self._where}.{name}")

    def tables(self, name: str, least: int, most: int) -> Iterator[LessonTable]:
        """A list of tables, so many of them."""
        values = self._get(name, [] if least == 0 else None)
        if not isinstance(values, list) or not least <= len(values) <= most:
            self.refuse(name, f"{least} to {most} tables")
        return (LessonTable(value, f"{self._where}.{name}[{index}]") for index, value in enumerate(values))

    def finish(self) -> None:
        """Refuse names that nothing asked for: they are typing errors.

        Raises:
            LessonFileError: there is one.
        """
        unknown = sorted(set(self.data) - self._taken)
        if unknown:
            self.refuse(unknown[0], f"only {', '.join(sorted(self._taken))}, not the unknown name")

    def _get(self, name: str, default: object = None) -> object:
        self._taken.add(name)
        if name not in self.data:
            if default is None:
                self.refuse(name, "a value")
            return default
        return self.data[name]
