"""This computer as a machine: alone as it was calibrated, shared by processes with what they exchange."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main
from core.analytic.collectives import LinkSpeed
from core.errors import ScenarioError
from core.lab import calibration_file
from core.lab.calibration import Calibration
from core.lab.this_computer import shared, this_computer
from tests.lab.examples import calibration
from tests.lab.test_local_link import fitted, following

SPEED = LinkSpeed(2e9, 80e-6)
PLAN = "plan --accelerator This-Computer --model smollm2-135m --weights int8 --input 64 --output 8"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))


def calibrated(with_link: bool = True) -> Calibration:
    """Keep a calibration of the machine that the tests run on."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    link = fitted(following(SPEED, 2)) if with_link else None
    here = calibration_file.fingerprint("cpu", "")
    made = replace(calibration(), fingerprint=here, measured_at=now, link=link)
    calibration_file.save(made)
    return made


def answer(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main([*PLAN.split(), *more, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_alone_it_is_the_machine_that_was_calibrated() -> None:
    made = calibrated()
    assert this_computer("int8") == made.machine("int8")


def test_processes_share_memory_bandwidth_and_arithmetic() -> None:
    whole = calibration().machine()
    half = shared(whole, 2)
    assert half.capacity_bytes == (whole.capacity_bytes or 0) / 2
    assert half.bandwidth_bytes_per_s == whole.bandwidth_bytes_per_s / 2
    assert half.peak_flops_per_s["bf16"] == whole.peak_flops_per_s["bf16"] / 2
    mine, theirs = half.rate("linear", "int4"), whole.rate("linear", "int4")
    assert (mine.fixed_s, mine.bytes_per_s) == (theirs.fixed_s, theirs.bytes_per_s / 2)
    assert mine.flops_per_s == tuple(flops / 2 for flops in theirs.flops_per_s)


def test_without_a_calibration_it_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ScenarioError, match="This machine was not calibrated yet"):
        this_computer("int8")
    assert main(PLAN.split()) == USER_MISTAKE
    assert "A prediction for this computer needs its calibration." in capsys.readouterr().err


def test_a_plan_on_it_has_its_times_and_no_price(capsys: pytest.CaptureFixture[str]) -> None:
    calibrated(with_link=False)
    found = answer(capsys)
    assert found["tpot_s"] > 0
    assert found["usd_per_million_tokens"] is None
    assert found["violations"] == []


def test_a_split_is_timed_with_the_link_that_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    calibrated()
    slow, fast = (
        answer(capsys, "--tp", "3"),
        _with_faster_link(capsys),
    )
    assert slow["violations"] == []
    # Two sums a layer, one after the embedding and the gather of the logits: each waits for the latency.
    exchanges = 2 * 30 + 1 + 1
    assert slow["tpot_s"] - fast["tpot_s"] == pytest.approx(exchanges * SPEED.latency_s, rel=0.05)
    assert any("counted with 80.0 µs and 2.00 GB/s one way" in note for note in slow["notes"])
    assert any("3 processes share this computer" in note for note in slow["notes"])


def _with_faster_link(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    fast = replace(calibrated(), link=fitted(following(LinkSpeed(SPEED.bytes_per_s, 1e-9), 2)))
    calibration_file.save(fast)
    return answer(capsys, "--tp", "3")


def test_a_split_without_a_measured_link_says_what_measures_it(capsys: pytest.CaptureFixture[str]) -> None:
    calibrated(with_link=False)
    found = answer(capsys, "--tp", "3")
    assert found["tpot_s"] is None
    assert any("need a link between them" in sentence for sentence in found["violations"])
    assert any("Run `python -m core bench`." in note for note in found["notes"])
