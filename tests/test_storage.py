"""The cache folder can be moved, and a file in it is never half written."""

from pathlib import Path

import pytest

from core.storage import CACHE_VARIABLE, cache_folder, keep, write_atomically


def test_the_folder_follows_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "deep" / "cache"))
    assert cache_folder() == tmp_path / "deep" / "cache"
    assert cache_folder().is_dir()


def test_without_it_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "llm-inference-lab"


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    write_atomically(path, lambda temporary: temporary.write_text("old"))

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_used_is_replaced_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    folder = cache_folder()
    assert folder.is_dir()
    assert folder == cache_folder(), "one folder for the whole process"
    assert "must be writable" in caplog.text


def test_a_full_disk_is_said_once_and_costs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    def full(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    assert not keep(tmp_path / "one" / "kept", full)
    assert not keep(tmp_path / "two" / "kept", full)
    (record,) = caplog.records
    assert "(No space left on device)" in record.getMessage()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert keep(tmp_path / "one" / "kept", lambda path: path.write_text("whole"))


def test_without_any_place_to_write_the_folder_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nowhere(**_: object) -> str:
        raise FileNotFoundError("No usable temporary directory found")

    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "deep"))
    monkeypatch.setattr("tempfile.mkdtemp", nowhere)
    assert cache_folder() == tmp_path / "file" / "deep"
    assert not keep(cache_folder() / "kept", lambda path: path.write_text("whole"))
