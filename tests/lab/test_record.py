"""A record comes back whole, or is refused with a sentence."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import RecordError
from core.lab.record import MOST_BYTES, RunRecord, dumps, load, loads, save
from core.lab.sealed_json import checksum
from tests.lab.examples import record


def edited(change: Callable[[dict[str, Any]], None], *, resealed: bool) -> str:
    """A record whose JSON was changed by hand, with or without a new checksum."""
    data = record().to_json()
    change(data)
    if resealed:
        del data["checksum"]
        data["checksum"] = checksum(data)
    return json.dumps(data)


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    run = record(noisy=("other programs used 40% of the processors",))
    save(run, tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run


def test_a_record_says_what_its_words_mean() -> None:
    data = record().to_json()
    assert data["definitions"]["tpot_s"] == "(last token - first token) / (tokens - 1)."
    assert data["summary"]["output_tokens"] == 8
    assert data["summary"]["mbu"] == pytest.approx(record().mbu)


def test_text_in_any_language_survives() -> None:
    run = record(text="Grüße, 你好, 👋")
    assert loads(dumps(run)).text == "Grüße, 你好, 👋"


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_a_record_cut_short_is_refused(part: float) -> None:
    text = dumps(record())
    with pytest.raises(RecordError, match="this one is cut short or was changed"):
        loads(text[: int(len(text) * part)])


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_file_is_called_empty(text: str) -> None:
    with pytest.raises(RecordError, match="this one is empty"):
        loads(text)


def test_an_edited_number_is_refused() -> None:
    def faster(data: dict[str, Any]) -> None:
        data["measured"]["decode_repeats_s"][0] /= 2

    with pytest.raises(RecordError, match="this one was changed since"):
        loads(edited(faster, resealed=False))


def halve_decode(data: dict[str, Any]) -> None:
    data["measured"]["decode_repeats_s"] = [value / 2 for value in data["measured"]["decode_repeats_s"]]


def halve_tpot(data: dict[str, Any]) -> None:
    data["measured"]["tpot_s"] /= 2
    data["summary"]["tpot_s"] /= 2


def drop_step(data: dict[str, Any]) -> None:
    del data["steps"][3]


def second_prefill(data: dict[str, Any]) -> None:
    data["steps"][1]["kind"] = "prefill"


def shift_context(data: dict[str, Any]) -> None:
    data["steps"][3]["context_tokens"] += 1


def many_steps(data: dict[str, Any]) -> None:
    data["request"]["max_tokens"] = 2


def shorter_prediction(data: dict[str, Any]) -> None:
    del data["prediction"]["decode_step_s"][-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (halve_decode, "its decode_median_s does not follow from its rows"),
        (halve_tpot, "its steps take longer than the whole run"),
        (second_prefill, "its steps are not numbered from 0, the prompt's first"),
        (drop_step, "its steps are not numbered from 0, the prompt's first"),
        (shift_context, "its contexts do not grow by one from the prompt's tokens"),
        (many_steps, "it has 8 steps for what it asked for"),
        (shorter_prediction, "it has 8 steps for what it asked for"),
    ],
)
def test_a_record_that_no_longer_adds_up_is_refused_even_with_a_new_checksum(
    change: Callable[[dict[str, Any]], None], message: str
) -> None:
    with pytest.raises(RecordError, match=f"numbers must add up, but {message}"):
        loads(edited(change, resealed=True))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 1, "a whole number from 2 to 2 at 'version'"),
        (("schema",), "another/run", "one of llm-inference-lab/run at 'schema'"),
        (("created_at",), "yesterday", "an ISO time at 'created_at'"),
        (("created_at",), "2026-11-29T12:00:00+02:00", "an ISO time in UTC"),
        (("host", "threads"), "2", "a whole number from 1 to 4,096 at 'host.threads'"),
        (("host", "cores"), True, "a whole number from 1 to 4,096 at 'host.cores'"),
        (("load", "others"), 7, "a number from 0 to 1 at 'load.others'"),
        (("noisy",), "no", "a list at 'noisy'"),
        (("noisy",), [1], "a list of texts at 'noisy'"),
        (("seeded_weights",), 0, "true or false at 'seeded_weights'"),
        (("measured", "ttft_s"), -1, "at 'measured.ttft_s'"),
        (("measured", "prefill_repeats_s"), [None], "a list of numbers"),
        (("measured", "operators_s"), {"training": {}}, "only prefill and decode"),
        (("steps",), [{"index": 0}], "must hold whole steps, but a step must have exactly"),
        (("request", "max_tokens"), 0, "must hold a request that could be made. max_tokens must be"),
        (("request",), None, "an object at 'request'"),
        (("prediction", "prefill_step_s"), [], "one step or more at 'prefill_step_s'"),
        (("calibration", "rates"), [], "a rate for attention, elementwise"),
        (("stop_reason",), "bored", "one of end, length, stopped at 'stop_reason'"),
    ],
)
def test_a_value_that_does_not_fit_is_named(path: tuple[str, ...], value: object, message: str) -> None:
    def change(data: dict[str, Any]) -> None:
        inner = data
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    with pytest.raises(RecordError, match=message):
        loads(edited(change, resealed=True))


def test_a_missing_value_is_named() -> None:
    with pytest.raises(RecordError, match=r"a value at 'load\.steal'"):
        loads(edited(lambda data: data["load"].pop("steal"), resealed=True))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(number: str) -> None:
    text = dumps(record()).replace('"steal": 0.0', f'"steal": {number}')
    assert number in text
    with pytest.raises(RecordError, match="must be whole JSON with finite numbers"):
        loads(text)


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.write_bytes(b"[" * (MOST_BYTES + 5))
    with pytest.raises(RecordError, match=r"A run record may have up to 1\.00 MB"):
        load(path)


@pytest.mark.parametrize("text", ["", "[]", "null", '"text"', "[" * 100_000, "\x00\x01", b"\xff\xfe"])
def test_what_is_not_a_record_is_refused(text: str | bytes) -> None:
    with pytest.raises(RecordError):
        loads(text)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"cannot \(No such file or directory\)"):
        load(tmp_path / "nothing.json")


def test_a_run_too_long_for_a_record_is_said() -> None:
    with pytest.raises(RecordError, match="Run fewer tokens"):
        dumps(record(text="x" * MOST_BYTES))


def test_a_step_repeated_counts_in_the_spread() -> None:
    run = record()
    slow = replace(run.measured, decode_repeats_s=(1.0, 2.0, 3.0))
    summary = RunRecord.summary(replace(run, measured=slow))
    assert summary["decode_median_s"] == 2.0
