"""Arguments that several commands share, checked as they are read."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection, Mapping
from typing import Final

from core.catalog.formats import STORAGE_FORMATS, NumberFormat
from core.catalog.near_names import spelled

_SHOWN: Final = 40
#: A number of more digits is described and not repeated.
_DIGITS: Final = 20


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers within limits, whose refusal is half a sentence."""

    def read(text: str) -> int:
        digits = text.strip().lstrip("+-").replace("_", "")
        if len(digits) > _DIGITS and digits.isdecimal():
            raise ArgumentTypeError(
                f"must be from {low:,} to {high:,}; got a number of {len(digits):,} digits"
            )
        try:
            value = int(text) if len(digits) <= _DIGITS else None
        except ValueError:
            value = None
        if value is None:
            raise ArgumentTypeError(f"must be a whole number from {low:,} to {high:,}; got {text[:_SHOWN]!r}")
        if not low <= value <= high:
            raise ArgumentTypeError(f"must be from {low:,} to {high:,}; got {value:,}")
        return value

    return read


def real_number(low: float, high: float) -> Callable[[str], float]:
    """A reader of numbers within limits, whose refusal is half a sentence."""
    limits = " to ".join(f"{limit:,.9f}".rstrip("0").rstrip(".") for limit in (low, high))

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ArgumentTypeError(f"must be a number from {limits}; got {text[:_SHOWN]!r}") from None
        if not low <= value <= high:  # also false for a NaN
            raise ArgumentTypeError(f"must be from {limits}; got {text.strip()[:_SHOWN]}")
        return value

    return read


def name_of(known: Callable[[], Collection[str]]) -> Callable[[str], str]:
    """A reader of names in which case does not matter; whether there is such a name is found out later."""

    def read(text: str) -> str:
        return spelled(text, known())

    return read


def add_formats(parser: ArgumentParser, formats: Mapping[str, NumberFormat] = STORAGE_FORMATS) -> None:
    """Declare ``--weights`` and ``--kv``; the help lists ``formats``."""
    weights, kv = (
        ", ".join(record.id for record in formats.values() if use in record.uses) for use in ("weights", "kv")
    )
    read = name_of(lambda: STORAGE_FORMATS)
    parser.add_argument("--weights", type=read, default="bf16", metavar="FORMAT", help=f"one of {weights}")
    parser.add_argument("--kv", type=read, default="bf16", metavar="FORMAT", help=f"one of {kv}")
