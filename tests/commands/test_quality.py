"""``python -m core quality``: its options, its object and its table; the comparison is tested apart."""

import json
import math
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main
from core.commands import quality
from core.lab.quality import CACHES, WEIGHTS, QualityRequest
from core.lab.quality_record import QualityRecord
from core.lab.worker.measure import Progress
from tests.lab.quality_example import quality_record

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[QualityRequest]:
    """What the comparison was asked for; its record is made by hand."""
    requests: list[QualityRequest] = []

    def compare(request: QualityRequest, report: Progress, budget_s: float) -> QualityRecord:
        request.validate()
        assert budget_s == math.inf
        for fraction in (0.0, 0.05, 0.1, 0.14, 1.0):
            report("comparing formats", fraction)
        requests.append(request)
        return quality_record(request, noisy=("other programs used 40% of the processors",))

    monkeypatch.setattr(quality, "compare_formats", compare)
    return requests


def test_json_is_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quality", "--json"]) == 0
    captured = capsys.readouterr()
    result: dict[str, Any] = json.loads(captured.out)
    assert QualityRecord.from_json(result).rows[0].kl == 0
    assert {"weight_bytes", "kl", "agreement", "perplexity", "tokens_per_s"} <= set(result["rows"][0])
    assert captured.err.splitlines() == [
        "quality: comparing formats, 10 %",
        "quality: comparing formats, 100 %",
    ]


def test_every_format_unless_some_are_named(asked: list[QualityRequest]) -> None:
    main(["quality"])
    main(["quality", "--weights", "INT8", "--kv", "--tokens", "64"])
    assert (set(asked[0].weights), set(asked[0].kv)) == (set(WEIGHTS), set(CACHES))
    assert asked[1] == QualityRequest(weights=("int8",), kv=(), tokens=64)


def test_the_table_names_its_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quality", "--weights", "int4", "--kv", "int8"]) == 0
    text = capsys.readouterr().out
    assert "The reference is the same stored weights in fp32" in text
    assert "matrices as q4_1" in text
    assert "rounded once already" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("fp32", "int4"))]
    assert [row[:2] for row in rows] == [["fp32", "fp32"], ["int4", "fp32"], ["fp32", "int8"]]
    assert "2.39e-03" in text
    assert "Times are noisy: other programs used 40% of the processors." in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--weights", "nvfp4"], "nvfp4"),
        (["--weights", "fp32"], "held against; leave it out"),
        (["--weights", "--kv"], "must be a format to compare"),
        (["--tokens", "5"], "--tokens must be from 16 to 2,048; got 5"),
        (["--kv", "int8", "int8"], "may be named once"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quality", *arguments]) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1
