"""``python -m core split``, run as its users run it: real processes over gloo."""

import json
import subprocess
import sys
from typing import Any

import pytest

from core.__main__ import main
from core.commands.split import render
from core.lab.split_record import split_from_json
from tests.engine.embedded import embedded

pytestmark = pytest.mark.torch

TINY = ["why", "--raw", "--model", "shape:tiny-moe", "--max-tokens", "4"]


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["split", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_the_embedded_model_in_two_stages_writes_what_one_process_writes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    embedded()
    result = as_json(capsys, "Why is the sky blue?", "--pp", "2", "--max-tokens", "4", "--threads", "2")
    record = split_from_json(result)
    assert result["equal_to_single"] is True
    assert result["is_as_predicted"] is True
    assert record.logits_error < 1e-4
    assert record.tokens_per_s and record.single_tokens_per_s
    assert [each.count for each in record.collectives] == [4, 4, 4, 4]
    assert min(record.stored_bytes) > record.single_stored_bytes / 2  # the tied table lies in both
    told = render(result)
    assert "4 tokens by 2 processes (tp 1, pp 2): the same tokens as one process writes" in told
    sent = next(line.split() for line in told.splitlines() if "stage_send" in line)
    tokens = record.prompt_tokens + 3
    assert sent[:6] == ["0", "stage_send", "2", "4", f"{tokens * 576 * 4:,}", f"{tokens * 576 * 4:,}"]


def test_torchrun_may_start_the_processes() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "core", "split"]
    done = subprocess.run(
        [*command, *TINY, "--tp", "2", "--json"], capture_output=True, text=True, timeout=240, check=True
    )
    result = json.loads(done.stdout)  # the first process alone speaks
    assert (result["equal_to_single"], result["is_as_predicted"], result["tp"]) == (True, True, 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tp", "3"], "must divide the 8 attention heads; 3 does not"),
        ([], "2 to 8 processes; tp 1 times pp 1 are 1"),
        (["--tp", "2", "--max-tokens", "0"], "--max-tokens must be from 1 to"),
    ],
)
def test_mistakes_are_sentences(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["split", *TINY, *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert not captured.out
