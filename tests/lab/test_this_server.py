"""A host publishes one whole and quiet sweep; what cannot be shown is a sentence, never a crash."""

from dataclasses import replace
from pathlib import Path

import pytest

from core.lab import sweep_record, this_server
from tests.lab.sweep_example import REQUEST, sweep


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(this_server, "cpu_name", lambda: "A processor")
    return tmp_path


def disturbed(count: int) -> sweep_record.SweepRecord:
    """A finished sweep, ``count`` cells of which were disturbed."""
    whole = sweep()
    cells = [replace(each, noisy=("a guest",) if i < count else ()) for i, each in enumerate(whole.cells)]
    return replace(whole, cells=tuple(cells))


def test_nothing_is_published_at_first() -> None:
    assert this_server.published() is None


def test_what_was_published_is_shown_until_the_next() -> None:
    assert this_server.publish(sweep()) == ""
    assert this_server.published() == sweep()
    faster = sweep(slowness=0.5)
    assert this_server.publish(faster) == ""
    assert this_server.published() == faster


def test_half_of_the_cells_may_be_disturbed_and_not_more() -> None:
    half = len(REQUEST.cells()) // 2
    assert this_server.publish(disturbed(half)) == ""
    said = this_server.publish(disturbed(half + 1))
    assert f"{half + 1} of {2 * half} cells were noisy (a guest). Make it again" in said
    assert this_server.published() == disturbed(half)


def test_a_sweep_that_ended_early_is_not_published() -> None:
    begun = replace(sweep(), cells=sweep().cells[:2])
    assert "this one ended early. Go on with it first." in this_server.publish(begun)
    assert this_server.published() is None


def test_a_sweep_of_which_nothing_ran_is_not_published() -> None:
    failed = [replace(each, problem="No.", forecast=None, samples=None, load=None) for each in sweep().cells]
    said = this_server.publish(replace(sweep(), cells=tuple(failed)))
    assert said.endswith("no cell of this one could be run.")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "x"}', "x" * 5_000_000])
def test_a_file_that_does_not_hold_is_a_sentence(folder: Path, content: str) -> None:
    (folder / "this-server.json").write_text(content)
    said = this_server.published()
    assert isinstance(said, str)
    assert said.startswith("The sweep of this server is not shown. A sweep's record ")


def test_a_changed_file_is_a_sentence_and_a_whole_one_is_read_again(folder: Path) -> None:
    path = folder / "this-server.json"
    path.write_text(sweep_record.dumps(sweep()).replace('"tries": 1', '"tries": 2', 1))
    assert isinstance(this_server.published(), str)
    this_server.publish(sweep())
    assert this_server.published() == sweep()


def test_a_folder_in_its_place_is_a_sentence(folder: Path) -> None:
    (folder / "this-server.json").mkdir()
    said = this_server.published()
    assert isinstance(said, str)
    assert "cannot" in said


def test_the_sweep_of_another_machine_is_not_this_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    this_server.publish(sweep())
    monkeypatch.setattr(this_server, "cpu_name", lambda: "Another processor")
    this_server._read.cache_clear()
    said = this_server.published()
    assert said == (
        "The sweep of this server is not shown: it was made on A processor, and this is Another processor."
    )


def test_no_room_is_a_sentence(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.lab.record_file.write_atomically", full)
    said = this_server.publish(sweep())
    assert said.startswith(str(folder))
    assert "could not be written (No space left on device)" in said


def test_a_place_that_is_no_folder_is_a_sentence(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("LLM_LAB_CACHE", str(folder / "file"))
    assert "could not be written" in this_server.publish(sweep())
    said = this_server.published()
    assert isinstance(said, str)
    assert said == "The sweep of this server could not be read (Not a directory)."
