"""The search command prints what does the job, or why nothing does."""

import json

import pytest

from core.__main__ import main

CHIPS = ["--accelerator", "h100-sxm-80gb", "--accelerator", "l40s", "--accelerator", "tpu-v5e"]


def test_the_best_and_the_front(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["search", "--model", "llama-3.1-8b", "--tpot", "0.03", "--ttft", "1", "--rate", "5", *CHIPS]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    best = found["best"][0]
    assert best["tpot_s"] <= 0.03 and best["ttft_s"] <= 1
    assert best["price"]["date"].startswith("20")
    assert best["replicas"] * best["requests_per_s"] >= 5
    assert found["feasible"] < found["candidates"]
    assert found["front"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "candidates do what is asked; best by cost" in text
    assert "none beaten in both" in text


def test_columns_stay_apart_however_large_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "smollm2-135m", "--accelerator", "l40s", "--rate", "0.000001"]
    assert main(["search", *asked, "--price", "l40s=1000000"]) == 0
    assert "%1" not in capsys.readouterr().out


def test_a_chip_that_is_named_twice_is_looked_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for names in (["l40s"], ["l40s", "l40s", "L40S"]):
        asked = [word for name in names for word in ("--accelerator", name)]
        assert main(["search", "--model", "smollm2-135m", *asked, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_an_old_price_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--accelerator", "tpu-v5e", "--model", "smollm2-135m"]) == 0
    assert "it may have moved" in capsys.readouterr().out


def test_a_price_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", *CHIPS, "--price", "l40s=0.01", "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["best"][0]
    assert best["accelerator"] == "l40s"
    assert best["price"]["note"] == "0.01 dollars an hour for each chip, typed in by you."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tpot", "0"], "--tpot must be from 0.000000001 to 2,592,000; got 0"),
        (["--rate", "1e308"], "--rate must be from 0.000001 to 1,000,000,000; got 1e308"),
        (["--rate", "1e-308"], "--rate must be from"),
        (["--price", "l40s=free"], "must be a number from 0.0001 to 1,000,000; got 'free'"),
        (["--price", "h100-sxm-80gb=1e308"], "must be from 0.0001 to 1,000,000; got 1e308"),
        (["--price", "l40s"], "must have the form CHIP=DOLLARS, as in l40s=0.80; got 'l40s'"),
        (["--price", "h100=2"], "got 'h100'. Did you mean h100-"),
        (["--accelerator", "abacus"], "The accelerator must be one of"),
        (["--tpot", "1e-9", *CHIPS], "candidates does what is asked"),
        (["--model", "nothing"], "nothing"),
    ],
)
def test_mistakes_are_sentences(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["search", *arguments]) == 2
    assert sentence in capsys.readouterr().err
