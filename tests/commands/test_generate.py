"""``python -m core generate``, run as its users run it."""

import json
from typing import Any

import pytest

from core.__main__ import main
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
}
SHAPE = ["--model", "shape:smollm2-135m", "--threads", "1"]


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["generate", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    result: dict[str, Any] = json.loads(captured.out)  # exactly one object, or this fails
    return result


def test_json_is_one_object_with_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "hi", *SHAPE, "--max-tokens", "3", "--weights", "bf16")
    assert set(result) == KEYS
    assert (result["prompt_tokens"], result["output_tokens"]) == (2, 3)
    assert (result["cache"], result["device"], result["weights"]) == ("contiguous", "cpu", "bf16")
    assert isinstance(result["peak_memory_bytes"], int)
    assert result["tokens_per_s"] == pytest.approx(1 / result["tpot_s"])


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
    result = as_json(capsys, "ab ab ab", *SHAPE, "--max-tokens", "8", *options, "--page-size", "4")
    assert set(result) == KEYS | {"speculation"}
    assert (result["cache"], result["kv"], result["output_tokens"]) == ("paged", "int8", 8)
    counts = result["speculation"]
    assert counts["decode_steps"] == 7 - counts["accepted_tokens"]


@pytest.mark.parametrize("how", ["layers:2", "model:shape:smollm2-135m"])
def test_a_draft_writes_what_the_model_writes_alone(capsys: pytest.CaptureFixture[str], how: str) -> None:
    arguments = ["hi", *SHAPE, "--max-tokens", "4", "--weights", "fp32", "--kv", "fp32"]
    plain = as_json(capsys, *arguments)
    guessed = as_json(capsys, *arguments, "--speculate", how, "--guesses", "2")
    assert guessed["text"] == plain["text"]
    assert guessed["speculation"]["drafted_tokens"] > 0


def test_a_seed_repeats_a_sampled_text(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["hi", *SHAPE, "--max-tokens", "4", "--temperature", "1.2", "--top-k", "40", "--top-p", "0.9"]
    texts = [as_json(capsys, *arguments, "--seed", seed)["text"] for seed in ("5", "5")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["hi", "--cache", "paged", "--page-size", "0"], "must be from 1 to"),
        (["   "], "The prompt is empty"),
        (["hi", "--model", "nowhere"], "The model must be smollm2-135m"),
        (["hi", "--weights", "int3"], "must be one of fp32"),
        (["hi", "--kv", "fp8"], "must be one of fp32, bf16, fp16, int8, int4"),
        (["hi", "--max-tokens", "0"], "must be from 1 to"),
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
    assert len(captured.err.strip().splitlines()) == 1
