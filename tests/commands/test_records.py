"""``python -m core records``: the list, and the check of a file that is to join it."""

import json
from pathlib import Path

import pytest

from core.__main__ import main
from core.commands import records
from core.lab import sweep_record as sweep_module
from core.lab.gallery import FOLDER
from tests.lab.recorded_sweep import sweep_record


def test_every_shipped_record_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["refused"] == []
    assert len(found["records"]) == len(list(FOLDER.rglob("*.json")))
    assert {"file", "kind", "created_at", "device", "machine", "model", "formats", "what", "noisy"} == set(
        found["records"][0]
    )


def test_a_contributor_checks_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    sweep_module.save(sweep_record(noisy=("a guest",)), path)
    assert main(["records", str(path)]) == 0
    said = capsys.readouterr().out
    assert "mine.json: sweep, NVIDIA H200 (cuda), 2026-11-29" in said
    assert "noisy: 7 of 8 cells were noisy" in said
    assert said.endswith("1 whole, 0 refused.\n")


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00\xff", b'{"schema": "llm-inference-lab/sweep"}'])
def test_a_bad_file_is_one_sentence_and_status_2(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert main(["records", str(path), "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "bad.json: A " in said.err
    assert said.err.count("\n") == 1


def test_a_file_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "/nowhere/x.json"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_list_names_bad_files_and_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text("{")
    sweep_module.save(sweep_record(), tmp_path / "good.json")
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert main(["records"]) == 0
    said = capsys.readouterr().out
    assert "bad.json: not a whole record." in said
    assert "1 whole, 1 refused." in said
