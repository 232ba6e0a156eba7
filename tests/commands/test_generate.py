"""``python -m core generate``, run as its users run it."""

import json
import logging
import sys
import threading
from typing import Any

import pytest
import torch

from core.__main__ import USER_MISTAKE, main
from core.commands.patience import patience
from core.engine.engine import Engine
from tests.engine.embedded import embedded

pytestmark = pytest.mark.torch

KEYS = {
    "text",
    "prompt_tokens",
    "output_tokens",
    "ttft_s",
    "tpot_s",
    "tokens_per_s",
    "peak_memory_bytes",
    "model",
    "weights",
    "kv",
    "cache",
    "device",
    "runner",
    "notes",
}
SHAPE = ["--model", "shape:smollm2-135m", "--threads", "1"]


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["generate", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("generate: ") for line in captured.err.splitlines())  # what it waits for
    result: dict[str, Any] = json.loads(captured.out)  # exactly one object, or this fails
    return result


def test_json_is_one_object_with_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "hi", *SHAPE, "--max-tokens", "3", "--weights", "bf16")
    assert set(result) == KEYS
    assert (result["prompt_tokens"], result["output_tokens"]) == (2, 3)
    assert (result["cache"], result["device"], result["weights"]) == ("contiguous", "cpu", "bf16")
    assert isinstance(result["peak_memory_bytes"], int)
    assert result["tokens_per_s"] == pytest.approx(1 / result["tpot_s"])


def test_a_compiled_run_writes_the_same_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the compiler, which takes long; its pieces are run as they are."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    arguments = ["hi", *SHAPE, "--max-tokens", "3", "--weights", "fp32", "--kv", "fp32"]
    compiled, eager = (as_json(capsys, *arguments, "--runner", name) for name in ("compiled", "eager"))
    assert (compiled["runner"], eager["runner"]) == ("compiled", "eager")
    assert compiled["text"] == eager["text"]


def test_experts_that_were_read_stand_beside_those_expected(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["hi", "--raw", "--model", "shape:tiny-moe", "--threads", "1", "--max-tokens", "1"]
    result = as_json(capsys, *arguments)
    assert set(result) == KEYS | {"experts"}
    assert result["experts"]["expected"] == pytest.approx(6 * (8 - 8 * (6 / 8) ** 2))
    assert 6 * 2 <= result["experts"]["read"] <= 6 * 4
    assert main(["generate", *arguments]) == 0
    assert "experts read in all layers and steps, 21.0 expected" in capsys.readouterr().out


def test_a_way_to_guess_that_there_is_not_is_refused_before_a_model_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Engine, "load", lambda *_, **__: pytest.fail("a model was read"))
    for way in ("luck", "layers:", "layers:two", "layers:-1", "model:", "ngram:3"):
        assert main(["generate", "hi", "--speculate", way]) == USER_MISTAKE
        assert "--speculate must be ngram, layers:N" in capsys.readouterr().err


@pytest.mark.parametrize(("weights", "noted"), [("int4", False), ("bf16", False), ("int8-g32", True)])
def test_a_file_in_other_blocks_than_were_asked_for_says_so(
    weights: str, noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    embedded()
    notes = as_json(capsys, "hi", "--max-tokens", "1", "--threads", "1", "--weights", weights)["notes"]
    assert [("as q4_1" in note, "--weights int4 takes" in note) for note in notes] == [(True, True)] * noted


def test_a_single_token_has_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "hi", *SHAPE, "--max-tokens", "1")
    assert (result["tpot_s"], result["tokens_per_s"]) == (None, None)


def test_the_text_streams_and_figures_follow(capsys: pytest.CaptureFixture[str]) -> None:
    embedded()
    arguments = ["Name a colour.", "--max-tokens", "6", "--threads", "1"]
    text = as_json(capsys, *arguments)["text"]
    assert main(["generate", *arguments]) == 0
    written, _, figures = capsys.readouterr().out.partition("\n\n")
    assert written == text
    assert "tokens/s" in figures


@pytest.mark.parametrize("cache", ["contiguous", "paged", "none"])
def test_all_caches_write_the_same_bare_continuation(capsys: pytest.CaptureFixture[str], cache: str) -> None:
    embedded()
    arguments = [
        "The capital of France is",
        "--raw",
        "--max-tokens",
        "4",
        "--weights",
        "fp32",
        "--threads",
        "2",
    ]
    assert "Paris" in as_json(capsys, *arguments, "--cache", cache)["text"]


def test_all_options_of_the_engine_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--cache", "paged", "--weights", "int4", "--kv", "int8", "--speculate", "ngram"]
    result = as_json(capsys, "ab ab ab", *SHAPE, "--max-tokens", "8", *options, "--page-tokens", "4")
    assert set(result) == KEYS | {"speculation"}
    assert (result["cache"], result["kv"], result["output_tokens"]) == ("paged", "int8", 8)
    counts = result["speculation"]
    assert set(counts) == {"drafted_tokens", "accepted_tokens", "acceptance", "decode_steps"}
    assert counts["decode_steps"] == 7 - counts["accepted_tokens"]


@pytest.mark.parametrize("how", ["layers:2", "model:shape:smollm2-135m"])
def test_a_draft_writes_what_the_model_writes_alone(capsys: pytest.CaptureFixture[str], how: str) -> None:
    arguments = ["hi", *SHAPE, "--max-tokens", "4", "--weights", "fp32", "--kv", "fp32"]
    plain = as_json(capsys, *arguments)
    guessed = as_json(capsys, *arguments, "--speculate", how, "--guesses", "2")
    assert guessed["text"] == plain["text"]
    counts = guessed["speculation"]
    assert counts["drafted_tokens"] > 0
    # Of those that were looked at: more than of all, since nobody looks behind a wrong one.
    assert counts["accepted_tokens"] / counts["drafted_tokens"] <= counts["acceptance"] <= 1
    assert not any("may differ" in note for note in guessed["notes"])


def test_a_speculated_text_says_what_may_differ_and_whether_it_paid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["hi", *SHAPE, "--max-tokens", "6", "--weights", "bf16", "--speculate", "layers:1"]
    counts = as_json(capsys, *arguments)
    little = 3 * counts["speculation"]["accepted_tokens"] < counts["speculation"]["drafted_tokens"]
    assert ["may differ" in note for note in counts["notes"]] == [True, *([False] if little else [])]
    assert little == any("speculation did not pay here" in note for note in counts["notes"])
    assert main(["generate", *arguments]) == 0
    said = capsys.readouterr().out
    assert "\nNote: This text may differ" in said
    right, drafted = (counts["speculation"][f"{name}_tokens"] for name in ("accepted", "drafted"))
    assert f"{right} of {drafted} guesses were right, {counts['speculation']['acceptance']:.0%} of" in said
    sampled = as_json(capsys, *arguments, "--temperature", "1")
    assert not any("may differ" in note for note in sampled["notes"])


def test_what_takes_longer_than_a_moment_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("tests.patience")
    said = threading.Event()

    def say(what: str) -> None:
        sys.stderr.write(what)
        said.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.commands.patience._say", say)
        with patience(log, moment_s=0.001):
            log.info("reading the model")
            assert said.wait(60)
            log.info("")
        assert capsys.readouterr().err == "reading the model"
        with patience(log, moment_s=60):
            log.info("packing the weights")
    assert not log.handlers
    assert log.level == logging.NOTSET


def test_the_engine_tells_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="core.engine.waiting"):
        assert main(["generate", "hi", *SHAPE, "--max-tokens", "1"]) == 0
    begun = [record.getMessage() for record in caplog.records if record.name == "core.engine.waiting"]
    assert begun[:2] == ["reading the model", ""]
    assert "packing the weights" in begun
    assert begun[-1] == ""


def test_a_seed_repeats_a_sampled_text(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["hi", *SHAPE, "--max-tokens", "4", "--temperature", "1.2", "--top-k", "40", "--top-p", "0.9"]
    texts = [as_json(capsys, *arguments, "--seed", seed)["text"] for seed in ("5", "5")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["hi", "--cache", "paged", "--page-size", "0"], "must be from 1 to"),
        (["   "], "The prompt is empty"),
        (["hi", "--runner", "graphs"], "graphs replays CUDA graphs, which need a CUDA device"),
        (["hi", "--runner", "warp"], "--runner must be one of eager, compiled, graphs; got 'warp'"),
        (["hi", "--model", "nowhere"], "The model must be smollm2-135m"),
        (["hi", "--weights", "int3"], "must be one of the 9 known here; got 'int3'"),
        (["hi", "--kv", "fp8"], "must be one of fp32, bf16, fp16, int8, int4"),
        (["hi", "--max-tokens", "0"], "must be from 1 to"),
        (["hi", *SHAPE, "--max-tokens", "9000"], "at most the model's context of 8,192 tokens; got 9,000"),
        (
            ["hi", "--seed", "1" + "0" * 30],
            "--seed must be from 0 to 9,223,372,036,854,775,807; got a number of",
        ),
        (["hi", "--temperature", "nan"], "must be from 0 to 5"),
        (["hi", "--temperature", "warm"], "--temperature must be a number from 0 to 5; got 'warm'"),
        (["hi", "--top-p", "0"], "must be from 0.01 to 1"),
        (["hi\udcff"], "must be text in UTF-8"),
        (["hi", *SHAPE, "--speculate", "luck"], "--speculate must be ngram, layers:N"),
        (["hi", *SHAPE, "--speculate", "layers:31"], "must have from 1 to 30 of them; got 31"),
        (["hi", *SHAPE, "--speculate", "ngram", "--guesses", "0"], "must be from 1 to 64"),
    ],
)
def test_mistakes_are_one_sentence_on_standard_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["generate", *arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert len([line for line in captured.err.splitlines() if not line.startswith("generate: ")]) == 1
