"""Runs that were recorded on other machines and ship with the app, for hosts that cannot measure."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from core.catalog.assets import FOLDER
from core.lab.record import RunRecord, load
from core.lesson.lesson import Lesson

_FOLDER: Final = FOLDER / "records"


def records(lesson: Lesson) -> list[RunRecord] | None:
    """A record of each of the lesson's runs, all from one machine; None where there are none."""
    by_machine: dict[str, list[RunRecord]] = {}
    for record in shipped(_FOLDER):
        by_machine.setdefault(record.host.device_name or record.host.cpu, []).append(record)
    for known in by_machine.values():
        found = [
            next((r for r in known if r.request == run.request), None) for run in lesson.measurement.runs
        ]
        complete = [record for record in found if record is not None]
        if len(complete) == len(found):
            return complete
    return None


@cache
def shipped(folder: Path) -> tuple[RunRecord, ...]:
    """Every record in a folder.

    Raises:
        RecordError: a file there is no whole record.
    """
    return tuple(load(path) for path in sorted(folder.glob("*.json")))
