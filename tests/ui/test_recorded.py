"""Recorded runs on lessons: a file that is no whole record takes nothing away from the others."""

import json
from pathlib import Path

from core.lab import record as run_record
from core.lab.gallery import FOLDER
from core.ui.lesson import recorded
from tests.lab.examples import record


def test_a_bad_file_among_the_records_leaves_the_others(tmp_path: Path) -> None:
    kept = FOLDER / "experiments" / "batching.json"
    run_record.save(record(), tmp_path / "run.json")
    (tmp_path / "experiment.json").write_bytes(kept.read_bytes())
    (tmp_path / "cut.json").write_bytes(kept.read_bytes()[:900])
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(100_000_000)
    assert recorded.shipped(tmp_path) == (record(),)
    assert list(recorded.shipped_experiments(tmp_path).values()) == [json.loads(kept.read_text())["result"]]
