"""The gallery of recorded runs: what it finds, what it says of other files, and when it looks again."""

import copy
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import RecordError, UserError
from core.lab import record as run_record
from core.lab import sweep_record as sweep_module
from core.lab.checked_json import Reader
from core.lab.endpoint import record as endpoint_record
from core.lab.experiment import KINDS
from core.lab.gallery import FOLDER, MOST_BYTES, MOST_FILES, gallery, read
from core.lab.gallery_entry import EXPERIMENTS, Entry, entry_of
from core.lab.record import RunRecord
from core.lab.sealed_json import sealed
from core.lab.sweep_record import SweepRecord
from tests.lab.examples import record
from tests.lab.recorded_server import server_record
from tests.lab.recorded_sweep import sweep_record

SHIPPED = sorted(FOLDER.rglob("*.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run, and a sweep of another machine in a folder of its own."""
    run_record.save(record(), tmp_path / "a-run.json")
    (tmp_path / "sweeps").mkdir()
    sweep_module.save(sweep_record(), tmp_path / "sweeps" / "h200.json")
    return tmp_path


def test_what_ships_is_whole() -> None:
    found = gallery()
    assert found.refused == ()
    assert [entry.name for entry in found.entries] == [
        path.relative_to(FOLDER).as_posix() for path in SHIPPED
    ]
    assert {"run", "experiment"} <= {entry.kind for entry in found.entries}
    assert all(entry.machine and entry.model and entry.formats and entry.what for entry in found.entries)


def test_a_record_says_by_itself_what_it_is(folder: Path) -> None:
    run, sweep = gallery(folder).entries
    assert (run.name, run.kind, run.machine) == ("a-run.json", "run", "A processor")
    assert (sweep.name, sweep.kind, sweep.machine) == ("sweeps/h200.json", "sweep", "NVIDIA H200")
    assert sweep.formats == "int4, bf16 / bf16"
    assert sweep.what == "8 of 8 cells, each predicted before it ran"
    assert gallery(folder).runs == (record(),)
    assert gallery(folder).sweeps == (sweep_record(),)


def test_a_sweep_says_how_many_cells_were_disturbed(folder: Path) -> None:
    sweep_module.save(sweep_record(noisy=("others used the host",)), folder / "sweeps" / "h200.json")
    assert gallery(folder).entries[1].noisy == ("7 of 8 cells were noisy",)


@pytest.mark.parametrize("predicted", [True, False])
def test_a_measured_server_has_its_place(tmp_path: Path, predicted: bool) -> None:
    (tmp_path / "server.json").write_text(endpoint_record.dumps(server_record(predicted=predicted)))
    (entry,) = gallery(tmp_path).entries
    assert (entry.kind, entry.device, entry.host) == ("server", "server", None)
    assert (entry.machine, entry.formats) == (
        ("1 × h100-sxm-80gb", "bf16 / bf16") if predicted else ("not said", "not said")
    )
    assert entry.what == "7 of 8 requests answered, at up to 4 at once"
    assert entry_of(entry.name, Reader(json.loads(entry.text()), "A record")) == entry


def test_every_kind_of_experiment_can_be_read() -> None:
    assert set(EXPERIMENTS) <= set(KINDS)
    recorded = [entry for entry in gallery().entries if entry.kind == "experiment"]
    for entry in recorded:
        assert entry.experiment is not None
        assert entry.result is not None
        assert entry.experiment.payload == json.loads((FOLDER / entry.name).read_text())["payload"]


def test_what_is_downloaded_is_the_record_again(folder: Path) -> None:
    for entry in (*gallery().entries, *gallery(folder).entries):
        assert entry_of(entry.name, Reader(json.loads(entry.text()), "A record")) == entry


# Bad files: one sentence each, nothing else lost


def edited(path: Path) -> None:
    data = json.loads(path.read_text())
    data["measured"]["ttft_s"] *= 0.5
    path.write_text(json.dumps(data))


def of_version(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 1}))


def huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100_000_000)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut short": (cut, "cut short or was changed"),
    "of another version": (of_version, "at 'version'"),
    "edited": (edited, "was changed since"),
    "100 MB": (huge, "this file has 100 MB and was not read"),
    "empty": (lambda path: path.write_text(""), "this one is empty"),
    "text": (lambda path: path.write_text("Hello, <b>you</b>"), "cut short or was changed"),
    "binary": (lambda path: path.write_bytes(bytes(range(256)) * 9), "cut short or was changed"),
    "a list": (lambda path: path.write_text("[1, 2]"), "must have an object"),
    "deep": (lambda path: path.write_text("[" * 200_000), "cut short or was changed"),
    "no number": (lambda path: path.write_text('{"schema": NaN}'), "is not a number in JSON"),
    "no schema": (lambda path: path.write_text('{"a": 1}'), "must name one of the schemas"),
    "another schema": (lambda path: path.write_text('{"schema": ["x"]}'), "must name one of the schemas"),
    "an unknown experiment": (
        lambda path: path.write_text('{"kind": "dig", "payload": {}, "result": {}}'),
        "at 'kind'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_sentence_and_hides_nothing(folder: Path, name: str) -> None:
    spoil, said = BAD[name]
    path = folder / "bad.json"
    path.write_bytes((folder / "a-run.json").read_bytes())
    spoil(path)
    found = gallery(folder)
    assert [entry.name for entry in found.entries] == ["a-run.json", "sweeps/h200.json"]
    (refused,) = found.refused
    assert refused.name == "bad.json"
    assert said in refused.why
    assert "\n" not in refused.why
    assert len(refused.why) < 600
    with pytest.raises(RecordError) as raised:
        read(path)
    assert str(raised.value) == refused.why


def test_an_experiment_that_was_sealed_and_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "batching.json"
    entry = next(entry for entry in gallery().entries if entry.kind == "experiment")
    path.write_text(entry.text())
    assert gallery(tmp_path).entries[0].result == entry.result
    data = json.loads(entry.text())
    data["result"]["model_name"] = "A better model"
    path.write_text(json.dumps(data))
    assert "was changed since" in gallery(tmp_path).refused[0].why


def test_a_pipe_a_folder_and_a_dead_link_are_not_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "dead.json").symlink_to(folder / "nowhere")
    found = gallery(folder)
    assert {refused.name for refused in found.refused} == {"pipe.json", "folder.json", "dead.json"}
    assert len(found.entries) == 2


def test_a_file_that_cannot_be_read_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, mode: str = "r") -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    (folder / "new.json").touch()
    assert "Permission denied" in gallery(folder).refused[-1].why


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert gallery(tmp_path / "nothing").entries == ()


def test_too_many_files_are_named(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 3):
        (tmp_path / f"{number:04}.json").write_text("{}")
    found = gallery(tmp_path)
    assert len(found.refused) == MOST_FILES + 1
    assert f"{MOST_FILES + 3} are there" in found.refused[-1].why


def test_a_file_of_the_largest_size_is_still_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text("{}" + " " * (MOST_BYTES - 2))
    assert "must name one of the schemas" in gallery(tmp_path).refused[0].why


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_whatever_is_missing_or_another_thing_is_a_sentence(path: Path, tmp_path: Path) -> None:
    """Values are taken out or replaced at random places; only errors for users may come of it."""
    draw = random.Random(path.name)  # noqa: S311 - no secret
    whole = json.loads(path.read_text())
    for number in range(60):
        data = copy.deepcopy(whole)
        spoil_somewhere(data, draw)
        if "checksum" in data:  # else the checksum alone would find it
            data = sealed({key: value for key, value in data.items() if key != "checksum"})
        spoilt = tmp_path / f"{number}.json"
        spoilt.write_text(json.dumps(data))
        try:
            assert isinstance(read(spoilt), Entry)
        except UserError as problem:
            assert str(problem)


def spoil_somewhere(data: Any, draw: random.Random) -> None:
    """Take out or replace one value, as deep as chance leads."""
    place: Any = data
    while True:
        key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.8:
            place = inner
            continue
        if draw.random() < 0.3:
            del place[key]
        else:
            place[key] = draw.choice([None, -1, 1e300, "x", [], {}, True, [[]], "9" * 50])
        return


# When it looks again


def test_a_file_that_is_dropped_changed_or_taken_away_is_noticed(folder: Path) -> None:
    assert len(gallery(folder).entries) == 2
    run_record.save(record(slowness=2.0), folder / "b-run.json")
    assert [entry.name for entry in gallery(folder).entries] == [
        "a-run.json",
        "b-run.json",
        "sweeps/h200.json",
    ]
    run_record.save(record(slowness=3.0), folder / "b-run.json")
    changed = gallery(folder).entries[1].record
    assert isinstance(changed, RunRecord)
    assert changed == record(slowness=3.0)
    (folder / "b-run.json").unlink()
    assert len(gallery(folder).entries) == 2


def test_a_file_that_stays_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = gallery(folder)

    def again(data: object) -> SweepRecord:
        raise AssertionError("it was read again")

    monkeypatch.setattr(SweepRecord, "from_json", again)
    assert gallery(folder).entries == before.entries
