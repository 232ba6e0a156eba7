"""Arguments that several commands share, checked as they are read."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping

from core.catalog.formats import STORAGE_FORMATS, NumberFormat


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers within limits, whose refusal is half a sentence."""

    def read(text: str) -> int:
        try:
            value = int(text) if len(text) <= 20 else None
        except ValueError:
            value = None
        if value is None:
            raise ArgumentTypeError(f"must be a whole number; got {text[:40]!r}")
        if not low <= value <= high:
            raise ArgumentTypeError(f"must be from {low:,} to {high:,}; got {value:,}")
        return value

    return read


def add_formats(parser: ArgumentParser, formats: Mapping[str, NumberFormat] = STORAGE_FORMATS) -> None:
    """Declare ``--weights`` and ``--kv``; the help lists ``formats``."""
    weights, kv = (
        ", ".join(record.id for record in formats.values() if use in record.uses) for use in ("weights", "kv")
    )
    parser.add_argument("--weights", default="bf16", metavar="FORMAT", help=f"one of {weights}")
    parser.add_argument("--kv", default="bf16", metavar="FORMAT", help=f"one of {kv}")
