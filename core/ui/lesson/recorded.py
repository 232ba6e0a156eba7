"""Runs that were recorded on other machines and ship with the app, for hosts that cannot measure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from core.catalog.assets import FOLDER
from core.lab.checked_json import parse
from core.lab.experiment import Experiment
from core.lab.record import RunRecord, load
from core.lesson.lesson import Lesson
from core.units import MB

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


def experiment(asked: Experiment) -> dict[str, Any] | None:
    """The recorded result of exactly this experiment; None where there is none."""
    return shipped_experiments(_FOLDER / "experiments").get(asked.key)


@cache
def shipped_experiments(folder: Path) -> Mapping[str, dict[str, Any]]:
    """The result of every experiment in a folder, by the experiment's key.

    Raises:
        RecordError: a file there is no whole record.
    """
    found = {}
    for path in sorted(folder.glob("*.json")):
        reader = parse(path.read_bytes(), "A recorded experiment", 4 * MB)
        done = Experiment(reader.text("kind"), reader.inner("payload").data, "")
        found[done.key] = reader.inner("result").data
    return MappingProxyType(found)
