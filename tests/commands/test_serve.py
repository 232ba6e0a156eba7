"""``python -m core serve``: a trace replayed as its users replay it."""

import json
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main

pytestmark = pytest.mark.torch

SHAPE = ["--model", "shape:smollm2-135m", "--threads", "1", "--weights", "bf16", "--kv", "bf16"]
SMALL = [*SHAPE, "--requests", "3", "--prompt-tokens", "4", "--answer-tokens", "3", "--places", "2"]
KEYS = {
    "model",
    "weights",
    "kv",
    "policy",
    "cache",
    "requests",
    "seed",
    "steps",
    "wall_s",
    "new_tokens",
    "tokens_per_s",
    "ttft_s",
    "tpot_s",
    "pages",
    "equal_to_simulator",
    "difference",
    "equal_outputs",
    "noisy",
    "notes",
}


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["serve", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    result: dict[str, Any] = json.loads(captured.out)  # exactly one object, or this fails
    return result


def test_json_is_one_object_with_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, *SMALL, "--page-tokens", "4", "--policy", "static", "--compare")
    assert set(result) == KEYS
    assert result["equal_to_simulator"] is True
    assert result["equal_outputs"] is True
    assert (result["policy"], result["cache"], result["requests"]) == ("static", "paged", 3)
    assert result["tokens_per_s"] == pytest.approx(result["new_tokens"] / result["wall_s"])
    assert list(result["ttft_s"]) == ["p50", "p90", "p99"]
    assert 0 < result["ttft_s"]["p50"] <= result["ttft_s"]["p99"]
    assert 0 < result["pages"]["most_used"] <= result["pages"]["total"]


@pytest.mark.parametrize(
    ("more", "note"),
    [
        (["--shared-tokens", "5"], "shorter than a page of 16 tokens"),
        (["--shared-tokens", "20", "--no-share"], "--no-share lets no request"),
        (["--shared-tokens", "20", "--cache", "contiguous"], "a contiguous cache has no pages to share"),
        (["--shared-tokens", "20", "--requests", "1"], "no page that held the beginning was ready"),
        (["--shared-tokens", "20", "--spacing", "4", "--spread", "fixed"], None),
        ([], None),
    ],
)
def test_it_says_why_nothing_was_shared(
    capsys: pytest.CaptureFixture[str], more: list[str], note: str | None
) -> None:
    result = as_json(capsys, *SMALL, "--model", "shape:tiny-moe", "--page-tokens", "16", *more)
    if note is None:
        assert result["notes"] == []
        assert (result["pages"]["shared_tokens"] > 0) == bool(more)
        return
    (said,) = result["notes"]
    assert note in said
    assert result["pages"]["shared_tokens"] == 0


def test_guesses_are_not_simulated_and_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL, "--speculate", "ngram", "--cache", "contiguous", "--step-tokens", "3"]
    assert main(["serve", *arguments]) == 0
    out = capsys.readouterr().out
    assert "3 requests" in out
    assert "equal to the simulator: not simulated with guesses" in out
    assert "tokens/s" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--page-tokens", "0"], "--page-tokens must be from 1 to 512; got 0."),
        (["--places", "many"], "--places must be a whole number"),
        (["--requests", "65"], "--requests must be from 1 to 64; got 65."),
        (["--policy", "magic"], "--policy must be one of static, dynamic, continuous"),
        (["--cache", "none"], "--cache must be one of paged, contiguous"),
        (["--cache-tokens", "8"], "A request must fit the cache of 8 tokens by itself"),
        (["--answer-tokens", "2000"], "up to 16,384 slots"),
        (["--model", "shape:nothing"], "nothing"),
        (["--kv", "fp8"], "must be one of fp32, bf16, fp16, int8, int4"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["serve", *arguments]) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
