"""The headless bench: its grid, its figures, its words. The worker is a fake."""

import json
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pytest

from core.commands import bench as command
from core.errors import JobError
from core.lab import bench
from core.lab.calibration import Calibration
from core.lab.client import LabClient
from core.lab.compare import compare
from core.lab.limits import Limits
from tests.lab.conftest import fake_command
from tests.lab.examples import calibration, record

ROWS = [bench.Row(run, compare(run)) for run in (record(), record(slowness=1.25), record(slowness=0.8))]


def test_the_grid_has_every_format_at_every_context() -> None:
    requests = list(bench.grid((64, 512), "cpu"))
    assert len(requests) == 6 * 2
    calibrated = {"fp32", "bf16", "int8", "int8-g32", "int8-dynamic", "int4"}
    assert {request.weights for request, _ in requests} == calibrated
    assert all(len(request.prompt.split()) == context for request, context in requests)
    on_gpu = {request.weights for request, _ in bench.grid((64,), "cuda")}
    assert on_gpu == {request.weights for request, _ in requests} | {"fp8-weight-only"}
    for request, _ in bench.grid(bench.CONTEXTS, "cpu"):
        request.validate()


def test_errors_are_percent_of_the_measured_value() -> None:
    errors = bench.summary(ROWS)
    assert errors["ttft"]["median_abs_pct_error"] == pytest.approx(20.0)
    assert errors["ttft"]["p90_abs_pct_error"] == pytest.approx(24.0)
    assert bench.summary([])["tpot"] == {"median_abs_pct_error": None, "p90_abs_pct_error": None}


def test_a_row_has_what_was_promised() -> None:
    row = bench.row_json(ROWS[1])
    assert set(row) == {"scenario", "predicted", "measured", "ratio", "noisy"}
    assert row["ratio"]["ttft"] == pytest.approx(1.25)
    assert row["scenario"]["prompt_tokens"] == 12


@pytest.fixture
def _without_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def calibrated(*_: object) -> Calibration:
        return calibration()

    monkeypatch.setattr(command, "LabClient", lambda limits: LabClient(limits, fake_command))
    monkeypatch.setattr(bench, "calibrate", calibrated)
    monkeypatch.setattr(bench, "calibrate_quickly", calibrated)
    monkeypatch.setattr(bench, "run_grid", lambda *_: ROWS)


@pytest.mark.usefixtures("_without_a_worker")
def test_the_command_answers_writes_and_reads_aloud(tmp_path: Path) -> None:
    parser = ArgumentParser()
    command.add_arguments(parser)
    result = command.run(parser.parse_args(["--quick", "--out", str(tmp_path / "bench.json")]))
    json.dumps(result, allow_nan=False)
    assert set(result) == {"machine", "calibration", "rows", "summary"}
    written = json.loads((tmp_path / "bench.json").read_text())
    assert len(written["records"]) == 3
    words = command.render(result)
    assert "A processor, 2 threads, torch 2.13.0, reads 30.0 GB/s" in words
    assert "TTFT off by 20 % (median), 24 % (90th percentile)" in words


@pytest.mark.usefixtures("_without_a_worker")
def test_a_device_that_is_not_there_is_said() -> None:
    parser = ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(JobError, match="must be one of cpu on this machine; got 'cuda'"):
        command.run(parser.parse_args(["--device", "cuda"]))


def test_a_job_that_fails_ends_the_bench_with_its_own_sentence(limits: Limits) -> None:
    lab = LabClient(replace(limits, owner_grace_s=60.0), fake_command)
    with pytest.raises(JobError, match="The job stopped at a fault in the engine"):
        bench.calibrate(lab, "cpu", lambda _: None)
    lab.close()


def test_words_mark_a_noisy_row() -> None:
    noisy = record(noisy=("other programs used 40% of the processors",))
    result = {
        "machine": {"device_name": "", "cpu": "x", "threads": 2, "torch_version": "2"},
        "calibration": calibration().to_json(),
        "rows": [bench.row_json(bench.Row(noisy, compare(noisy)))],
        "summary": bench.summary([]),
    }
    assert "noisy" in command.render(result)
