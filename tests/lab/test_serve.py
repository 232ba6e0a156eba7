"""Serving a trace as a job: the engine does what the simulator counts, and its record holds together."""

import io
import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from core.engine.engine import Engine
from core.errors import RecordError, RequestError
from core.lab import serve_file
from core.lab.experiment import KINDS, SWEEP
from core.lab.serve_record import ServeRecord
from core.lab.serve_request import ServeRequest, Way
from core.lab.worker import engines, serve_job
from core.lab.worker.experiments import EXPERIMENTS
from core.lab.worker.loop import JobContext, Outbox, StopRequestedError
from core.lab.worker.serve_job import prompts, serve
from core.simulate.trace import Trace
from tests.engine.embedded import embedded
from tests.engine.small import small_engine

pytestmark = pytest.mark.torch

TRACE = Trace(requests=6, prompt_tokens=5, answer_tokens=6, spacing=1, seed=3)
REQUEST = ServeRequest(
    trace=TRACE,
    ways=(Way("continuous", "paged"), Way("static", "contiguous"), Way("dynamic", "paged", 3)),
    places=3,
    page_tokens=4,
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return small_engine("paged", page_tokens=16)


@pytest.fixture(scope="module")
def record(engine: Engine) -> ServeRecord:
    return serve(engine, REQUEST, lambda *_: None)


def test_every_way_takes_the_simulators_steps_page_for_page(record: ServeRecord) -> None:
    assert [record.difference(service) for service in record.services] == ["", "", ""]
    assert record.equal_to_simulator
    assert len({len(service.steps) for service in record.services}) > 1, "the ways do differ"


def test_every_request_has_the_same_tokens_however_it_was_served(record: ServeRecord) -> None:
    assert record.equal_outputs
    assert record.unequal_requests == ()
    lengths = [arrival.new_tokens for arrival in REQUEST.arrivals()]
    assert [len(request.token_ids) for request in record.services[0].requests] == lengths


def test_one_by_one_without_guesses_gives_the_same_tokens_as_together_with_guesses(engine: Engine) -> None:
    trace = replace(TRACE, answer_tokens=40, spread="fixed")
    request = replace(REQUEST, trace=trace, guesses=3, ways=(Way(), Way(places=1, guessing=False)))
    together, alone = (record := serve(engine, request, lambda *_: None)).services
    assert record.equal_outputs
    assert {step.record.num_sequences for step in alone.steps} == {1}
    assert max(step.record.num_sequences for step in together.steps) == 3
    assert sum(step.record.drafted_tokens for step in together.steps) > 0
    assert sum(step.record.drafted_tokens for step in alone.steps) == 0
    assert record.difference(alone) == ""


def test_what_was_predicted_stays_with_the_record_and_must_be_of_its_steps(record: ServeRecord) -> None:
    first, *others = record.services
    rows = tuple(0.01 for _ in first.steps)
    with_rows = replace(record, services=(replace(first, predicted_step_s=rows), *others))
    assert serve_file.loads(serve_file.dumps(with_rows)) == with_rows
    short = replace(with_rows, services=(replace(first, predicted_step_s=rows[1:]), *others))
    with pytest.raises(RecordError, match="the seconds of every simulated step"):
        serve_file.loads(serve_file.dumps(short))


def test_the_embedded_model_gives_the_same_tokens_in_blocks_and_in_one_piece() -> None:
    request = ServeRequest(
        trace=Trace(requests=3, prompt_tokens=6, answer_tokens=4, seed=1),
        ways=(Way(cache="paged"), Way("static", "contiguous")),
        places=2,
        page_tokens=4,
    )
    found = serve(embedded(), request, lambda *_: None)
    assert found.equal_to_simulator
    assert found.equal_outputs
    assert found.model_name.startswith("SmolLM2")


def test_times_are_in_order(record: ServeRecord) -> None:
    for service in record.services:
        for request in service.requests:
            assert 0 <= request.arrival_s <= request.first_s <= request.last_s <= service.wall_s + 0.1
        ends = [step.end_s for step in service.steps]
        assert ends == sorted(ends)
        assert service.tokens_per_s == pytest.approx(service.new_tokens / ends[-1])


@pytest.mark.parametrize(
    "changes",
    [
        {"share": True, "trace": replace(TRACE, shared_tokens=9)},
        {"share": False, "cache_tokens": 48},  # so little that requests lose their pages
        {"places": 1, "page_tokens": 1},
        {"page_tokens": 64},
    ],
)
def test_sharing_losing_and_odd_sizes_are_simulated_too(engine: Engine, changes: dict[str, Any]) -> None:
    found = serve(engine, replace(REQUEST, ways=(Way(),), **changes), lambda *_: None)
    assert found.difference(found.services[0]) == ""


def test_pages_are_lost_where_there_are_too_few(engine: Engine) -> None:
    long = Trace(requests=4, prompt_tokens=5, answer_tokens=12, spread="fixed")
    request = replace(REQUEST, trace=long, cache_tokens=32, ways=(Way(),))
    found = serve(engine, request, lambda *_: None)
    assert sum(step.record.num_preempted for step in found.services[0].steps) > 0
    assert found.equal_to_simulator


def test_the_engine_is_left_as_it_was(engine: Engine, record: ServeRecord) -> None:
    assert (engine.cache, engine.page_tokens) == ("paged", 16)
    again = serve(engine, REQUEST, lambda *_: None)
    assert [s.requests[0].token_ids for s in again.services] == [
        s.requests[0].token_ids for s in record.services
    ]
    assert again.equal_to_simulator, "pages that an earlier trace filled are forgotten"


def test_guesses_change_steps_and_no_token(engine: Engine, record: ServeRecord) -> None:
    guessed = serve(engine, replace(REQUEST, guesses=3), lambda *_: None)
    assert guessed.equal_to_simulator is None
    assert [r.token_ids for r in guessed.services[0].requests] == [
        r.token_ids for r in record.services[0].requests
    ]


def test_prompts_begin_alike_and_differ_from_the_first_own_token_on() -> None:
    request = replace(REQUEST, trace=replace(TRACE, shared_tokens=5))
    made = prompts(request, 256)
    assert {tuple(ids[:5]) for ids in made} == {tuple(made[0][:5])}
    assert len({ids[5] for ids in made}) == len(made)
    assert [len(ids) for ids in made] == [a.prompt_tokens for a in request.arrivals()]


def test_a_cancel_ends_it_between_two_steps(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    context = JobContext("cpu-1", Outbox(io.BytesIO()), stop)
    steps = []

    def report(phase: str, fraction: float | None) -> None:
        steps.append(fraction)
        if len(steps) == 3:
            stop.set()
        context.report(phase, fraction)

    with pytest.raises(StopRequestedError):
        serve(engine, REQUEST, report)
    assert len(steps) == 3
    assert serve(engine, REQUEST, lambda *_: None).equal_to_simulator, "its pages are free again"


def test_the_job_reads_its_request_and_writes_its_record(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shelf:
        def take(self, wanted: object, warm_up: object) -> Engine:
            assert warm_up is engines.settle
            return engine

    sink = io.BytesIO()
    context = JobContext("cpu-1", Outbox(sink), threading.Event())
    result = serve_job.serve_trace(context, REQUEST.to_json(), Shelf())  # type: ignore[arg-type]
    assert ServeRecord.from_json(json.loads(json.dumps(result))).equal_to_simulator
    fractions = [json.loads(line)["fraction"] for line in sink.getvalue().splitlines()]
    assert fractions == sorted(fractions)
    assert 0.9 < fractions[-1] <= 1


def test_every_kind_of_experiment_is_a_job_of_the_worker() -> None:
    assert {*EXPERIMENTS, SWEEP} == set(KINDS)


def test_a_request_longer_than_the_models_context_is_refused(engine: Engine) -> None:
    long = replace(REQUEST, trace=Trace(requests=1, prompt_tokens=300, answer_tokens=9, spread="fixed"))
    with pytest.raises(RequestError, match="fit the model's context of 256 tokens; one may grow to 309"):
        serve(engine, long, lambda *_: None)


# --- The record as a file ---------------------------------------------------------------------------


def changed(record: ServeRecord, *path: Any, value: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(record.to_json()))
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


def test_a_record_survives_its_file(record: ServeRecord) -> None:
    assert ServeRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_record_whose_counts_were_changed_is_found_out(record: ServeRecord) -> None:
    data = changed(record, "services", 0, "steps", 2, "record", "pages_used", value=99)
    found = ServeRecord.from_json(data)
    assert not found.equal_to_simulator
    assert "step 2: pages_used is 99" in found.difference(found.services[0])
    cut = changed(record, "services", 0, "steps", value=record.to_json()["services"][0]["steps"][:-1])
    assert "simulated" in ServeRecord.from_json(cut).difference(ServeRecord.from_json(cut).services[0])


def test_other_tokens_are_found_out(record: ServeRecord) -> None:
    tokens = list(record.services[0].requests[1].token_ids)
    data = changed(record, "services", 0, "requests", 1, "token_ids", value=[*tokens[:-1], 7_777])
    found = ServeRecord.from_json(data)
    assert not found.equal_outputs
    assert found.unequal_requests == (1,)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("services",), [], "one for each way"),
        (("services", 0, "steps"), [], "one step or more"),
        (("services", 0, "steps", 0, "record"), {}, "a step"),
        (("services", 0, "steps", 0, "requests"), [99], "a list of numbers from 0 to 5"),
        (("services", 0, "steps", 0, "held_tokens"), [], "a number for each holder"),
        (("services", 0, "steps", 0, "changes", 0, "added"), [9999], "a list of numbers"),
        (("services", 0, "steps", 0, "changes", 0, "added"), [0.5], "whole numbers"),
        (("services", 0, "requests", 0, "token_ids"), [], "every token of every answer"),
        (("services", 0, "requests", 0, "first_s"), -1, "a number from 0"),
        (("request", "places"), 0, "places must be from 1 to 64"),
        (("request",), None, "must be an object"),
        (("created_at",), "yesterday", "an ISO time"),
    ],
)
def test_a_record_that_does_not_hold_is_refused(
    record: ServeRecord, path: tuple[Any, ...], value: Any, sentence: str
) -> None:
    with pytest.raises(RecordError, match=sentence):
        ServeRecord.from_json(changed(record, *path, value=value))
