"""The command prints the errors, what could not be predicted, and takes a reader's own rows."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.__main__ import main
from tests.analytic.validation.rows import ROW


def write(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(ROW))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_own_rows_are_judged_and_the_others_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "rows.csv", ROW, {**ROW, "id": "x2", "model": "Mystery-9B", "hf_id": ""})
    assert main(["validate", "--rows", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 1
    assert {"mean_abs_pct_error", "median_abs_pct_error", "p90_abs_pct_error", "by_metric"} <= set(found)
    assert found["mean_abs_pct_error"] < 40
    assert found["by_metric"]["decode_tok_s_per_user"]["rows"] == 1
    assert found["skipped"] == [{"id": "x2", "why": "the shape of Mystery-9B is not in the catalogue"}]


def test_the_published_rows_make_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 0
    text = capsys.readouterr().out
    assert "decode, batch 1, one accelerator, dense, not eager" in text
    assert "prefill and TTFT" in text
    assert "of six global terms" in text
    assert "Not predicted" in text
    assert "only a bound of the batch is stated" in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("id,model\n", "The file must have the columns"), (None, "cannot be read")],
)
def test_a_bad_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    path = tmp_path / "rows.csv"
    if text is not None:
        path.write_text(text)
    assert main(["validate", "--rows", str(path)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_rows_that_are_no_regular_file_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    make(tmp_path / "rows")
    assert main(["validate", "--rows", str(tmp_path / "rows")]) == 2
    said = capsys.readouterr().err
    assert "must be a regular file; 'rows' is a folder, a pipe or a device. Save them to a CSV file" in said


def test_what_a_row_calls_itself_cannot_move_the_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wild = {**ROW, "id": "x\x1b[2J2", "model": "My\x1b[31m", "hf_id": ""}
    path = write(tmp_path / "rows.csv", ROW, wild)
    assert main(["validate", "--rows", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "the shape of My[31m is not in the catalogue: x[2J2" in shown


def test_nothing_to_predict_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "rows.csv", {**ROW, "hardware": "abacus"})
    assert main(["validate", "--rows", str(path)]) == 2
    assert "no data sheet of abacus" in capsys.readouterr().err
