"""``python -m core endpoint``: one object or one sentence, and never the key."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main
from core.lab.endpoint.record import loads
from tests.lab.endpoint.stand_in import Handler, stand_in, streams, wait_for

KEY = "sk-never-to-be-seen"
SMALL = ["--requests", "4", "--prompt-tokens", "20", "--output-tokens", "3"]
DEPLOYED = ["--model-id", "llama-3.1-8b", "--accelerator", "L4"]


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["endpoint", *arguments, *SMALL, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    answer: dict[str, Any] = json.loads(captured.out)
    return answer


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["endpoint", *arguments]) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_measured_stands_beside_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in(pause_s=0.001) as it:
        answer = as_json(capsys, it.url, "--concurrency", "1", "2", *DEPLOYED)
    assert answer["ended"] == "complete"
    assert [level["concurrency"] for level in answer["levels"]] == [1, 2]
    for level, predicted in zip(answer["levels"], answer["prediction"]["levels"], strict=True):
        assert "rows" not in level
        for name in ("ttft_s", "tpot_s"):
            measured = level["summary"][name]["p50"]
            assert level["ratio"][name] == pytest.approx(measured / predicted[name])
    assert answer["prediction"]["deployment"]["accelerator"] == "l4"


def test_the_prediction_is_made_before_the_server_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in() as it:
        said = mistake(capsys, it.url, "--model-id", "llama-3.1-8b", "--accelerator", "no-such-chip")
        assert "no-such-chip" in said
    assert it.calls == []


def test_without_a_deployment_there_is_no_prediction_and_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in() as it:
        answer = as_json(capsys, it.url)
    assert answer["prediction"] is None
    assert "No prediction was made" in answer["notes"][-1]


def test_for_a_person_it_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in(pause_s=0.001) as it:
        assert main(["endpoint", it.url, *SMALL, *DEPLOYED]) == 0
    shown = capsys.readouterr().out
    assert f"a-model at {it.url}" in shown
    assert all(f"{name} " in shown for name in ("TTFT", "TPOT", "ITL", "tokens/s", "p99"))
    assert "Predicted for llama-3.1-8b bf16 on 1 x NVIDIA L4." in shown


def test_the_whole_record_goes_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    with stand_in() as it:
        answer = as_json(capsys, it.url, "--out", str(out))
    record = loads(out.read_text())
    assert record.created_at == answer["created_at"]
    assert record.answered == 4


def test_a_file_that_cannot_be_written_is_found_out_before(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with stand_in() as it:
        assert "--out must name a file" in mistake(capsys, it.url, "--out", str(tmp_path / "no" / "file"))
    assert it.calls == []


def test_the_key_comes_from_the_environment_and_is_never_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def tells(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(400, "application/json", json.dumps({"error": {"message": f"what is {KEY}?"}}))

    monkeypatch.setenv("MY_KEY", KEY)
    out = tmp_path / "record.json"
    with stand_in() as it:
        answer = as_json(capsys, it.url, "--key-variable", "MY_KEY", "--out", str(out))
    assert set(it.keys) == {f"Bearer {KEY}"}
    assert KEY not in json.dumps(answer) + out.read_text()
    with stand_in(tells) as it:
        said = mistake(capsys, it.url, "--key-variable", "MY_KEY")
    assert "what is [key]?" in said


def test_a_key_in_the_place_of_its_variable_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    said = mistake(capsys, "http://localhost:1", "--key-variable", KEY)
    assert "give its name, never the key itself" in said
    assert KEY not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ftp://host"], "must begin with http"),
        (["http://localhost:1", "--concurrency", "0"], "--concurrency must be from 1 to 256; got 0"),
        (
            ["http://localhost:1", "--concurrency", "4", "--requests", "2"],
            "as many requests as are made at once",
        ),
        (["http://localhost:1", "--model-id", "llama-3.1-8b"], "needs both --model-id and --accelerator"),
        (["http://localhost:1", "--model-id", "nothing", "--accelerator", "l4"], "The model must be one of"),
        (["http://localhost:1", "--api", "telepathy"], "must be one of completions, chat"),
        (["http://localhost:1", *DEPLOYED, "--weights", "fp99"], "fp99"),
        (
            ["http://other.test", "--model-id", "gpt2", "--accelerator", "this-computer"],
            "other.test has another",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in mistake(capsys, *arguments)


@pytest.fixture
def heard() -> Iterator[None]:
    """A shell starts what it puts in the background deaf to interrupts, and its children are so too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="An interrupt is sent otherwise on Windows.")
@pytest.mark.usefixtures("heard")
def test_an_interrupt_keeps_what_was_answered() -> None:
    with stand_in(streams, pause_s=0.005) as it:
        command = [sys.executable, "-m", "core", "endpoint", it.url, "--requests", "500", "--json"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        wait_for(lambda: len(it.bodies) >= 5, 60)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    answer = json.loads(shown)
    assert answer["ended"] == "stopped"
    answered = answer["levels"][0]["summary"]["answered"]
    assert 1 <= answered < 500
    assert said == f"This run is stopped: {answered} of 500 requests are kept.\n"
