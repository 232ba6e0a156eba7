"""The runs that ship with the app are whole, real, and those that the lessons ask for."""

from pathlib import Path

import pytest

from core.lab.record import load
from core.lesson.lesson_file import lessons
from core.lesson.measures import MEASURES

FOLDER = Path(__file__).parents[2] / "assets" / "records"
PATHS = sorted(FOLDER.glob("*.json"))
REQUESTS = [run.request for lesson in lessons().values() for run in lesson.measurement.runs]


def test_there_are_records() -> None:
    assert PATHS


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_record_is_whole_small_and_of_a_lessons_run(path: Path) -> None:
    record = load(path)
    assert record.request in REQUESTS
    assert record.host.cpu
    assert record.output_tokens > 1
    assert path.stat().st_size < 120_000


@pytest.mark.parametrize("name", [name for name, lesson in lessons().items() if lesson.measurement.runs])
def test_a_lessons_lines_can_be_made_of_its_records(name: str) -> None:
    lesson = lessons()[name]
    found = {record.request: record for record in map(load, PATHS)}
    runs = {run.name: found.get(run.request) for run in lesson.measurement.runs}
    if None in runs.values():
        pytest.skip("This lesson's runs are not recorded yet: docs/record_lessons.py records them.")
    for measure in lesson.measurement.measures:
        row = MEASURES[measure.measure][0]([run for name in measure.runs if (run := runs[name])])
        assert row is not None
        assert row.ratio > 0
