"""Runs that were recorded on other machines and ship with the app, for hosts that cannot measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.lab.experiment import Experiment
from core.lab.gallery import FOLDER, gallery
from core.lab.record import RunRecord
from core.lesson.lesson import Lesson

_FOLDER: Final = FOLDER


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


def shipped(folder: Path) -> tuple[RunRecord, ...]:
    """Every whole record of a run in a folder; what is wrong with others, the gallery says."""
    return gallery(folder).runs


def experiment(asked: Experiment) -> dict[str, Any] | None:
    """The recorded result of exactly this experiment; None where there is none."""
    found = shipped_experiments(_FOLDER).get(asked.key)
    return None if found is None else dict(found)


def shipped_experiments(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The result of every whole experiment in a folder, by the experiment's key."""
    return {
        entry.experiment.key: entry.result
        for entry in gallery(folder).entries
        if entry.experiment is not None and entry.result is not None
    }
