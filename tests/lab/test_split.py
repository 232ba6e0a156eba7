"""The experiment with a split model: its request, its job, and its record."""

import json
from dataclasses import replace
from typing import Any

import pytest

from core.analytic.collectives import LinkSpeed
from core.errors import FormatError, RecordError, RequestError
from core.lab.experiment import KINDS
from core.lab.split_request import KIND, SplitRequest
from core.lab.split_trial import SplitTrial
from core.lesson.split_trial import (
    WAYS,
    cost_words,
    exchange_name,
    predicted_s,
    request_of,
    same_text,
    same_traffic,
)
from tests.lab.split_example import split_trial
from tests.lab.test_local_link import fitted, following

REQUEST = SplitRequest()


def test_a_request_survives_its_way_to_the_worker() -> None:
    for way in WAYS:
        request = request_of({"ways": way})
        assert SplitRequest.from_json(json.loads(json.dumps(request.to_json()))) == request
        assert request.experiment("").kind == KIND
    assert KIND in KINDS


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tp": 1}, "2 to 8 processes; tp 1 times pp 1 are 1"),
        ({"tp": 3, "pp": 3}, "tp 3 times pp 3 are 9"),
        ({"tp": -2, "pp": -1}, "2 to 8 processes"),
        ({"prompt": " "}, "it has 0"),
        ({"max_tokens": 65}, "from 1 to 64; got 65"),
        ({"weights": "int3"}, "must be one of"),
        ({"tp": "3"}, "int at 'tp'; got str"),
        ({"more": 1}, "no field 'more'"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((RequestError, FormatError), match=says):
        SplitRequest.from_json({**REQUEST.to_json(), **changes})


@pytest.mark.parametrize("request_", [REQUEST, SplitRequest(tp=1, pp=3)])
def test_a_record_comes_back_and_a_changed_one_is_refused(request_: SplitRequest) -> None:
    trial = split_trial(request_, noisy=("others were at work",))
    data = json.loads(json.dumps(trial.to_json()))
    assert SplitTrial.from_json(data) == trial
    for changed in (
        {**data, "split": {**data["split"], "equal_to_single": False}},
        {**data, "request": {**data["request"], "tp": 2, "pp": 2}},
        {**data, "created_at": "yesterday"},
        {name: value for name, value in data.items() if name != "host"},
    ):
        with pytest.raises(RecordError):
            SplitTrial.from_json(changed)


def test_an_exchange_is_predicted_by_the_link_that_was_known_before() -> None:
    link = fitted(following(LinkSpeed(2e9, 80e-6), 2))
    trial = split_trial(REQUEST, link=link)
    assert SplitTrial.from_json(trial.to_json()) == trial
    former = {name: value for name, value in trial.to_json().items() if name != "link"}
    assert SplitTrial.from_json(former).link is None
    found = {each.name: predicted_s(each, link) for each in trial.split.collectives}
    # One process of three hands two others 6,912 bytes at once, or a third of 196,608 bytes twice.
    assert found["mlp_all_reduce"] == pytest.approx(80e-6 + 2 * 6912 / 2e9, rel=1e-6)
    assert found["logits_gather"] == pytest.approx(80e-6 + 2 / 3 * 196_608 / 2e9, rel=1e-6)
    piped = split_trial(SplitRequest(tp=1, pp=3)).split
    assert {predicted_s(each, link) for each in piped.collectives} == {None}


def test_the_page_says_whether_the_parts_add_up() -> None:
    good, bad = split_trial(REQUEST).split, split_trial(REQUEST, others=True).split
    assert (same_text(good).holds, same_text(bad).holds) == (True, False)
    assert "3 processes wrote the same 2 tokens as one" in same_text(good).sentence
    assert "wrote other tokens than one" in same_text(bad).sentence
    assert same_traffic(good).holds
    first, *others = good.collectives
    wrong = replace(good, collectives=(replace(first, message_bytes=1), *others))
    assert not same_traffic(wrong).holds
    assert "sum after the embedding: 1 bytes were counted" in same_traffic(wrong).sentence
    assert "1 thread each" in cost_words(good)
    piped = split_trial(SplitRequest(tp=1, pp=3)).split
    assert exchange_name(piped.collectives[0], piped) == "stage 1: sent to the next stage"


@pytest.mark.torch
def test_the_job_writes_alone_then_split_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    import io  # noqa: PLC0415 - the other tests here run without torch
    import threading  # noqa: PLC0415

    from core.engine.parallel import rank  # noqa: PLC0415
    from core.errors import JobError  # noqa: PLC0415
    from core.lab.worker import split_job  # noqa: PLC0415
    from core.lab.worker.loop import JobContext, Outbox, StopRequestedError  # noqa: PLC0415
    from tests.engine import test_split as engine_tests  # noqa: PLC0415
    from tests.engine.threaded_ranks import on_threads  # noqa: PLC0415

    source = engine_tests.checkpoint()
    monkeypatch.setattr(rank, "open_checkpoint", lambda _: source)

    class Shelf:
        def take(self, wanted: Any) -> Any:
            assert (wanted.weights, wanted.kv, wanted.cache) == ("fp32", "fp32", "contiguous")
            return engine_tests.whole_engine(source)

    def threads(job: Any, **_: Any) -> Any:
        return on_threads(job.ranks, lambda place: rank.work(job, place), monkeypatch)

    def stopped(job: Any, **_: Any) -> Any:
        stop.set()
        raise JobError("The run was stopped.")

    stop, request = threading.Event(), SplitRequest(tp=2, max_tokens=3)
    job = JobContext("cpu-1", Outbox(io.BytesIO()), stop)
    monkeypatch.setattr(split_job, "launch", threads)
    result = SplitTrial.from_json(split_job.split(job, request.to_json(), Shelf()))  # type: ignore[arg-type]
    assert result.split.equal_to_single
    assert result.split.is_as_predicted
    assert len(result.split.token_ids) == 3
    monkeypatch.setattr(split_job, "launch", stopped)
    with pytest.raises(StopRequestedError):
        split_job.split(job, request.to_json(), Shelf())  # type: ignore[arg-type]
