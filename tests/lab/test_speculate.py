"""The experiment with speculation: its request, its job on a small engine, and its record."""

import io
import json
import threading
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from core.analytic.speculative import expected_tokens, speedup
from core.errors import FormatError, RecordError, RequestError
from core.lab.request import RunRequest
from core.lab.speculate_record import SpeculateRecord
from core.lab.speculate_request import SpeculateRequest

RUN = RunRequest(prompt="ab ab ab ab", weights="fp32", kv="fp32", raw=True, max_tokens=20)
REQUESTS = {
    "ngram": SpeculateRequest(RUN),
    "layers": SpeculateRequest(RUN, "layers", 1, 3),
    "sampled": SpeculateRequest(replace(RUN, temperature=0.8), "layers", 1, 3),
}


@cache
def engine() -> Any:
    from tests.engine.small import small_engine  # noqa: PLC0415 - the other tests here run without torch

    return small_engine()


class Shelf:
    """A shelf on which every model is the small one."""

    def take(self, wanted: Any) -> Any:
        assert wanted.cache == "contiguous"
        return engine()


def done(request: SpeculateRequest, *, stopped: bool = False) -> dict[str, Any]:
    from core.lab.worker.loop import JobContext, Outbox  # noqa: PLC0415
    from core.lab.worker.speculate_job import speculate  # noqa: PLC0415

    stop = threading.Event()
    if stopped:
        stop.set()
    job = JobContext("cpu-1", Outbox(io.BytesIO()), stop)
    result: dict[str, Any] = json.loads(json.dumps(speculate(job, request.to_json(), Shelf())))  # type: ignore[arg-type]
    return result


# The request


def test_a_request_survives_its_way_to_the_worker() -> None:
    for request in REQUESTS.values():
        assert SpeculateRequest.from_json(json.loads(json.dumps(request.to_json()))) == request
    assert REQUESTS["ngram"].is_exact
    assert not REQUESTS["sampled"].is_exact
    assert not replace(REQUESTS["ngram"], run=replace(RUN, weights="int8")).is_exact


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"guesses": 0}, "guesses must be from 1 to 16; got 0"),
        ({"guesses": 17}, "guesses must be from 1 to 16; got 17"),
        ({"layers": 3}, "layers of the draft ngram must be from 0 to 0; got 3"),
        ({"draft": "layers"}, "layers of the draft layers must be from 1 to"),
        ({"draft": "luck"}, "must be one of ngram, layers; got 'luck'"),
        ({"draft": 3}, "must be a word"),
        ({"guesses": True}, "whole numbers"),
        ({"more": 1}, "exactly the fields run, draft, layers, guesses"),
        ({"run": {**RUN.to_json(), "max_tokens": 97}}, "max_tokens must be from 2 to 96; got 97"),
        ({"run": {**RUN.to_json(), "cache": "none"}}, "so the cache must be contiguous"),
        ({"run": {**RUN.to_json(), "prompt": " "}}, "The prompt is empty"),
        ({"run": {**RUN.to_json(), "weights": "int3"}}, "must be one of"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(changes: dict[str, object], says: str) -> None:
    with pytest.raises((RequestError, FormatError), match=says) as caught:
        SpeculateRequest.from_json({**REQUESTS["ngram"].to_json(), **changes})
    assert str(caught.value).endswith(".")


# The job and its record


@pytest.mark.torch
@pytest.mark.parametrize("name", REQUESTS)
def test_both_texts_are_written_and_the_steps_are_the_simulators(name: str) -> None:
    request = REQUESTS[name]
    record = SpeculateRecord.from_json(done(request))
    assert record.request == request
    assert (record.first_difference is None) == (name != "sampled")
    assert len(record.plain.token_ids) == len(record.guessed.token_ids) == 20
    assert record.steps_agree
    assert record.drafted > 0
    assert record.drafted == sum(one.drafted_tokens for one in record.rounds)
    assert len(record.guessed.steps) <= len(record.plain.steps) == 20
    low, middle, high = (record.speed_up[index] for index in (1, 0, 2))
    assert 0 < low <= middle <= high
    writings = len(record.plain.answer_s)
    rounds = sum(step.drafted_tokens > 0 for step in record.guessed.steps)
    assert len(record.guessed.verify_s) == len(record.guessed.draft_s) == writings * rounds
    assert len(record.plain.step_s) == writings * 19


@pytest.mark.torch
def test_a_cancelled_experiment_stops_and_a_draft_without_layers_is_refused() -> None:
    from core.lab.worker.loop import StopRequestedError  # noqa: PLC0415

    with pytest.raises(StopRequestedError):
        done(REQUESTS["ngram"], stopped=True)
    with pytest.raises(RequestError, match="from 1 to 2 of them; got 9"):
        done(replace(REQUESTS["layers"], layers=9))


@pytest.mark.torch
def test_the_formula_is_given_what_was_measured() -> None:
    record = SpeculateRecord.from_json(done(REQUESTS["layers"]))
    costs, acceptance = record.costs, record.acceptance
    assert costs is not None
    assert acceptance is not None
    full = [step for step in record.guessed.decode_steps if step.drafted_tokens == 3]
    same = replace(record, guessed=replace(record.guessed, steps=(record.guessed.steps[0], *full)))
    assert same.acceptance is not None
    assert same.formula_tokens == pytest.approx(float(expected_tokens(same.acceptance, 3)))
    assert same.formula_speed_up == pytest.approx(
        float(speedup(same.acceptance, 3, costs.draft, costs.verify))
    )


@pytest.mark.torch
def test_nothing_guessed_is_no_acceptance() -> None:
    request = replace(REQUESTS["ngram"], run=replace(RUN, prompt="q", max_tokens=2))
    record = SpeculateRecord.from_json(done(request))
    assert record.drafted == 0
    assert (record.acceptance, record.costs, record.formula_speed_up) == (None, None, None)
    assert record.steps_agree


@pytest.mark.torch
@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("guessed", "token_ids"), [1] * 30, "its steps brought others"),
        (("plain", "token_ids"), [1], "no steps or no times"),
        (("plain", "answer_s"), [], "no steps or no times"),
        (("guessed", "answer_s"), [1.0], "not written in the same way"),
        (("plain", "step_s"), [], "no times"),
        (("guessed", "draft_s"), ["fast"], "a list of numbers"),
        (("guessed", "steps"), [{}], "must hold whole steps"),
        (("request", "guesses"), 99, "a request that could be made"),
        (("created_at",), "yesterday", "an ISO time"),
        (("prompt_tokens",), 0, "a whole number from 1"),
    ],
)
def test_a_record_that_does_not_hold_together_is_refused(
    path: tuple[str, ...], value: object, says: str
) -> None:
    data = _one_record()
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(RecordError, match=says):
        SpeculateRecord.from_json(data)


@pytest.mark.torch
def test_another_simulated_step_would_be_seen() -> None:
    record = SpeculateRecord.from_json(_one_record())
    fewer = replace(record.guessed, steps=record.guessed.steps[:-1])
    first = replace(record.guessed.steps[1], context_tokens=999)
    other = replace(record.guessed, steps=(record.guessed.steps[0], first, *record.guessed.steps[2:]))
    assert not replace(record, guessed=fewer).steps_agree
    assert not replace(record, guessed=other).steps_agree
    shorter = replace(record.guessed, token_ids=record.guessed.token_ids[:7])
    assert replace(record, guessed=shorter).first_difference == 7


@cache
def _text() -> str:
    return json.dumps(done(REQUESTS["ngram"]))


def _one_record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(_text())
    return record
