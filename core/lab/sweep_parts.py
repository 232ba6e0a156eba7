"""What a running sweep has streamed so far, as a record: the beginning, then cell after cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.lab.checked_json import Reader
from core.lab.sweep_cell import SweptCell
from core.lab.sweep_record import SweepRecord


def begun_part(record: SweepRecord) -> dict[str, Any]:
    """The first part of a job: what is known before its first cell."""
    return {"record": record.to_json()}


def cell_part(swept: SweptCell) -> dict[str, Any]:
    """A part for each cell that is done."""
    return {"cell": swept.to_json()}


def gathered(parts: Sequence[Mapping[str, Any]]) -> SweepRecord | None:
    """The record that the parts of a job make up; None where it has not begun.

    Raises:
        RecordError: a part is not what a sweep streams.
    """
    if not parts:
        return None
    first, *others = parts
    record = SweepRecord.from_json(first.get("record"))
    for part in others:
        cell = Reader(part, "A part of a sweep").inner("cell")
        record = record.with_cell(SweptCell.from_reader(cell))
    return record
