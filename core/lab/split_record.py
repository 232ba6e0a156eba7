"""The record of a split run as plain JSON, checked value by value when it comes back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from core.analytic.split_record import CollectiveRecord, SplitRecord
from core.lab.checked_json import Reader

_WHAT: Final = "A record of a split run"
_MOST: Final = 1_000_000
_TEXTS: Final = ("model", "weights", "kv", "device", "backend", "text")
_COUNTS: Final = ("tp", "pp", "threads", "single_threads", "prompt_tokens", "steps")
_LISTS: Final = ("token_ids", "single_token_ids", "stored_bytes")


def split_to_json(record: SplitRecord) -> dict[str, Any]:
    """The record with its two verdicts, as a plain object."""
    data = asdict(record)
    for name in (*_LISTS, "collectives"):
        data[name] = list(data[name])
    return {**data, "equal_to_single": record.equal_to_single, "is_as_predicted": record.is_as_predicted}


def split_from_json(data: object) -> SplitRecord:
    """Build a record from what ``split_to_json`` made.

    Raises:
        RecordError: a value is missing or not of its kind, or a verdict does not follow from the rest.
    """
    reader = Reader(data, _WHAT)
    plain: dict[str, Any] = {
        **{name: reader.text(name) for name in _TEXTS},
        **{name: reader.whole(name, 1, _MOST) for name in _COUNTS},
        **{name: _whole(reader, name) for name in _LISTS},
        **{name: reader.optional_number(name) for name in ("tokens_per_s", "single_tokens_per_s")},
    }
    record = SplitRecord(
        **plain,
        logits_error=reader.number("logits_error"),
        single_stored_bytes=reader.whole("single_stored_bytes"),
        collectives=tuple(_collective(each) for each in reader.objects("collectives")),
    )
    if len(record.stored_bytes) != record.tp * record.pp:
        reader.refuse("stored_bytes", "a number for each process")
    for name in ("equal_to_single", "is_as_predicted"):
        if reader.flag(name) != getattr(record, name):
            reader.refuse(name, "what follows from its tokens and counts")
    return record


def _collective(reader: Reader) -> CollectiveRecord:
    predicted = ("predicted_count", "predicted_bytes")
    plain: dict[str, Any] = {
        **{name: reader.whole(name) for name in ("stage", "ranks", "count", "message_bytes")},
        **{name: reader.number(name) for name in ("median_s", "p10_s", "p90_s")},
        **{name: None if reader.data.get(name) is None else reader.whole(name) for name in predicted},
    }
    return CollectiveRecord(name=reader.text("name"), **plain)


def _whole(reader: Reader, name: str) -> tuple[int, ...]:
    numbers = reader.numbers(name)
    if not all(number == int(number) for number in numbers):
        reader.refuse(name, "a list of whole numbers")
    return tuple(int(number) for number in numbers)
