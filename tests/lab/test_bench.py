"""The headless bench: its grid, its figures, its words. The worker is a fake."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.commands import bench as command
from core.errors import JobError, RequestError, UserError
from core.lab import bench, sweep_record, this_server
from core.lab.calibration import Calibration
from core.lab.client import LabClient
from core.lab.job import JobSnapshot
from core.lab.limits import Limits
from core.lab.sweep_cell import SweptCell
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import SweepRequest
from tests.lab.conftest import fake_command
from tests.lab.examples import calibration
from tests.lab.sweep_example import sweep, swept

SMALL = SweepRequest(weights=("int4",), batches=(1, 4), prompts=(64, 256), new_tokens=8)


def arguments(*words: str) -> Namespace:
    parser = ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_the_sweeps_have_every_calibrated_format() -> None:
    assert set(bench.formats("cpu")) == {"fp32", "bf16", "int8", "int8-g32", "int8-dynamic", "int4"}
    assert set(bench.formats("cuda")) == {*bench.formats("cpu"), "fp8-weight-only"}
    for request in (bench.quick_sweep("cpu"), bench.full_sweep("cpu"), bench.full_sweep("cuda")):
        request.validate()
        assert {cell.weights for cell in request.cells()} == set(request.weights)


def test_the_protocol_has_sixty_cells_over_three_shapes_in_every_setting() -> None:
    for seed in range(3):
        cells = replace(bench.HELD_OUT, seed=seed).cells()
        assert len(cells) >= 60
        assert len({cell.model for cell in cells}) >= 3
        for name in ("weights", "kv", "cache", "batch", "prompt_tokens"):
            assert len({getattr(cell, name) for cell in cells}) > 1


def test_errors_are_percent_of_the_measured_value() -> None:
    cells = tuple(swept(cell, slow) for cell, slow in zip(SMALL.cells(), (1.0, 1.25, 0.8), strict=False))
    errors = bench.summary(cells)
    assert errors["ttft"]["median_abs_pct_error"] == pytest.approx(20.0)
    assert errors["ttft"]["p90_abs_pct_error"] == pytest.approx(24.0)
    assert bench.summary(())["tpot"] == {"median_abs_pct_error": None, "p90_abs_pct_error": None}


def test_a_row_has_what_was_promised_also_where_nothing_ran() -> None:
    row = bench.row_json(swept(SMALL.cells()[0], 1.25))
    assert {"scenario", "predicted", "measured", "ratio", "noisy"} <= set(row)
    assert row["ratio"]["ttft"] == pytest.approx(1.25)
    assert row["scenario"]["prompt_tokens"] == 64
    failed = SweptCell(SMALL.cells()[0], measured_at="2026-11-29T12:00:00+00:00", problem="It does not fit.")
    assert bench.row_json(failed)["measured"] == {"ttft_s": None, "tpot_s": None, "end_to_end_s": None}


def test_settings_of_the_command_line_take_the_place_of_the_sweeps_own() -> None:
    asked = command._request(arguments("--quick", "--batch", "1", "2", "--weights", "int8", "--seed", "7"))
    assert (asked.batches, asked.weights, asked.seed) == ((1, 2), ("int8",), 7)
    assert command._request(arguments("--held-out", "--seed", "3")) == replace(bench.HELD_OUT, seed=3)


@pytest.fixture
def _without_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def calibrated(*_: object) -> Calibration:
        return calibration()

    monkeypatch.setattr(command, "LabClient", lambda limits: LabClient(limits, fake_command))
    monkeypatch.setattr(bench, "calibrate", calibrated)
    monkeypatch.setattr(bench, "calibrate_quickly", calibrated)


@pytest.mark.usefixtures("_without_a_worker")
def test_the_command_answers_writes_and_reads_aloud(tmp_path: Path) -> None:
    """Two cells a job: it goes on until all are done, and what is written is the whole sweep."""
    out = tmp_path / "bench.json"
    words = ("--quick", "--weights", "int4", "bf16", "--batch", "1", "4", "--prompt-tokens", "64", "256")
    result = command.run(arguments(*words, "--out", str(out)))
    json.dumps(result, allow_nan=False)
    assert set(result) == {"machine", "calibration", "rows", "summary"}
    assert len(result["rows"]) == 8
    record = sweep_record.load(out)
    assert record.is_finished
    said = command.render(result)
    assert "A processor, 2 threads, torch 2.13.0, reads 30.0 GB/s" in said
    assert "TTFT off by 9.1 % (median), 9.1 % (90th percentile)" in said
    assert "Whole request off by" in said


@pytest.mark.usefixtures("_without_a_worker")
def test_a_finished_sweep_is_published_or_it_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(this_server, "cpu_name", lambda: "A processor")
    words = ("--quick", "--weights", "int4", "--batch", "1", "--prompt-tokens", "64", "--publish")
    command.run(arguments(*words))
    published = this_server.published()
    assert isinstance(published, SweepRecord)
    assert [swept.cell.weights for swept in published.cells] == ["int4"]
    assert "all visitors of this host's app see this sweep now" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path / "file"))
    assert command.run(arguments(*words))["rows"]
    assert "this-server.json could not be written" in capsys.readouterr().err


@pytest.mark.usefixtures("_without_a_worker")
def test_a_sweep_that_ended_early_goes_on_from_its_file(tmp_path: Path) -> None:
    whole = sweep(SMALL)
    begun = tmp_path / "begun.json"
    sweep_record.save(replace(whole, cells=whole.cells[:1]), begun)
    result = command.run(arguments("--resume", str(begun), "--quick", "--out", str(tmp_path / "whole.json")))
    assert len(result["rows"]) == len(SMALL.cells())
    assert sweep_record.load(tmp_path / "whole.json").cells[0] == whole.cells[0]


def test_a_finished_file_costs_no_calibration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "LabClient", lambda *_: pytest.fail("no worker is needed"))
    whole = sweep(SMALL)
    sweep_record.save(whole, tmp_path / "whole.json")
    result = command.run(arguments("--resume", str(tmp_path / "whole.json")))
    assert len(result["rows"]) == len(SMALL.cells())
    assert result["calibration"] == whole.calibrations[-1].to_json()
    assert "finished; nothing is left to run" in capsys.readouterr().err


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), JobError("The measuring process was killed.")])
@pytest.mark.usefixtures("_without_a_worker")
def test_what_was_streamed_is_written_when_a_job_ends_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException
) -> None:
    def ends_early(lab: LabClient, job: str, look: Callable[[JobSnapshot], None]) -> JobSnapshot:
        while len(lab.snapshot(job).parts) < 2:
            time.sleep(0.01)
        raise trouble

    monkeypatch.setattr(bench, "finish", ends_early)
    out = tmp_path / "begun.json"
    words = ("--quick", "--weights", "int4", "bf16", "--batch", "1", "--prompt-tokens", "64")
    with pytest.raises(type(trouble)):
        command.run(arguments(*words, "--out", str(out)))
    assert [swept.cell.weights for swept in sweep_record.load(out).cells][:1] == ["int4"]


@pytest.mark.usefixtures("_without_a_worker")
def test_a_folder_that_goes_away_does_not_cost_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    def goes_away(*_: object) -> Calibration:
        folder.rmdir()
        folder.write_text("")  # a file in its place: it cannot be made again
        return calibration()

    monkeypatch.setattr(bench, "calibrate_quickly", goes_away)
    words = ("--quick", "--weights", "int4", "--batch", "1", "--prompt-tokens", "64")
    assert command.run(arguments(*words, "--out", str(folder / "out.json")))["rows"]
    assert "could not be written (File exists); the answer follows" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--weights", "int8"), ("--most", "3"), ("--held-out",), ("--quality",)])
def test_settings_beside_a_file_to_go_on_with_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(RequestError, match=f"goes on with the settings of its file; {words[0]} would"):
        command.run(arguments("--resume", str(tmp_path / "begun.json"), *words))


@pytest.mark.usefixtures("_without_a_worker")
def test_a_cell_that_cannot_run_says_why_and_the_rest_is_there() -> None:
    words = ("--quick", "--model", "smollm2-135m", "shape:tinyllama-1.1b", "--weights", "int4")
    said = command.render(command.run(arguments(*words)))
    assert "tinyllama-1.1b" in said
    assert "It does not fit this machine." in said


@pytest.mark.parametrize("words", [("--weights", "int3"), ("--batch", "0"), ("--model", "/etc/passwd")])
def test_a_sweep_that_cannot_be_is_refused_before_a_worker_starts(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError):
        command.run(arguments("--quick", *words))


@pytest.mark.usefixtures("_without_a_worker")
def test_a_device_that_is_not_there_is_said() -> None:
    with pytest.raises(JobError, match="must be one of cpu on this machine; got 'cuda'"):
        command.run(arguments("--device", "cuda"))


def test_a_job_that_fails_ends_the_bench_with_its_own_sentence(limits: Limits) -> None:
    lab = LabClient(replace(limits, owner_grace_s=60.0), fake_command)
    with pytest.raises(JobError, match="The job stopped at a fault in the engine"):
        bench.calibrate(lab, "cpu", lambda _: None)
    lab.close()


def test_words_mark_a_noisy_row() -> None:
    noisy = swept(SMALL.cells()[0], noisy=("other programs used 40% of the processors",))
    result = {
        "machine": {"device_name": "", "cpu": "x", "threads": 2, "torch_version": "2"},
        "calibration": calibration().to_json(),
        "rows": [bench.row_json(noisy)],
        "summary": bench.summary(()),
    }
    assert "noisy" in command.render(result)
