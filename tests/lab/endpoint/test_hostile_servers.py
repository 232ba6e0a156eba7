"""Servers that mean harm: addresses that are none, answers that stop short, and a key that is said back."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from core.errors import EndpointError
from core.lab.endpoint.load import measure
from core.lab.endpoint.record import dumps, loads
from core.lab.endpoint.request import EndpointRequest
from tests.lab.endpoint.stand_in import Behaviour, Handler, lists, stand_in, streams

KEY = "sk-SECRET-1234"
REQUEST = EndpointRequest(
    requests=2, prompt_tokens=8, output_tokens=4, connect_s=2, silence_s=2, request_s=10, run_s=30
)
PIECE = {"choices": [{"text": "a", "finish_reason": None}]}


def complaint(answer: Behaviour = streams, models: Behaviour | None = None) -> str:
    with stand_in(answer, models) as it, pytest.raises(EndpointError) as found:
        asyncio.run(measure(replace(REQUEST, url=it.url), KEY))
    assert KEY not in str(found.value)
    return str(found.value)


def sends_on(location: str) -> Behaviour:
    return lambda handler, _: handler.send(302, "text/html", Location=location)


@pytest.mark.parametrize(
    "location", ["http://[::x", "http://h:x/", "file:///etc/passwd", "http://h:99999999"]
)
def test_a_redirect_to_what_is_no_address_is_one_sentence(location: str) -> None:
    assert "which is never followed" in complaint(sends_on(location))
    assert "which is never followed" in complaint(models=sends_on(location))


def test_an_answer_that_stops_without_its_end_is_not_a_whole_one() -> None:
    """Where the end of the connection is the end of the answer, HTTP cannot tell that it was cut short."""

    def cut_short(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(200, "text/event-stream")
        handler.event(PIECE)
        handler.wfile.write(b'data: {"choices": [{"te')

    assert "must end with a reason or [DONE]" in complaint(cut_short)


@pytest.mark.parametrize("last", ["[DONE]", {"choices": [{"text": "", "finish_reason": "stop"}]}])
def test_a_reason_or_a_last_word_ends_an_answer(last: object) -> None:
    def ends(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(200, "text/event-stream")
        handler.event(PIECE)
        handler.event(last)

    with stand_in(ends) as it:
        assert asyncio.run(measure(replace(REQUEST, url=it.url))).answered == 2


@pytest.mark.parametrize(
    "usage",
    [
        [{"completion_tokens": -5, "prompt_tokens": -1, "prompt_tokens_details": {"cached_tokens": -3}}],
        [{"completion_tokens": True, "prompt_tokens": 2.5}],
        [{"completion_tokens": 1, "prompt_tokens": 7}, {"completion_tokens": 1, "prompt_tokens": 10**7}],
    ],
)
def test_counts_that_cannot_be_are_left_out_and_the_record_comes_back(usage: list[dict[str, Any]]) -> None:
    def counts(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(200, "text/event-stream")
        handler.event(PIECE)
        for each in usage:
            handler.event({"choices": [], "usage": each})
        handler.event("[DONE]")

    with stand_in(counts) as it:
        record = asyncio.run(measure(replace(REQUEST, url=it.url)))
    assert [row.output_tokens for level in record.levels for row in level.rows] == [1, 1]
    assert loads(dumps(record)) == record


def test_a_key_that_a_server_says_back_is_in_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "version_string", lambda _: f"server of {KEY}")
    with stand_in(streams, lists(f"model-{KEY}")) as it:
        record = asyncio.run(measure(replace(REQUEST, url=it.url), KEY))
    assert record.server.software == "server of [key]"
    assert KEY not in json.dumps(record.to_json()) + repr(record)


def test_a_stand_in_for_a_key_may_be_a_part_of_a_name() -> None:
    with stand_in(streams, lists("vllm/a-model")) as it:
        record = asyncio.run(measure(replace(REQUEST, url=it.url), "vllm"))
    assert it.bodies[0]["model"] == record.server.model == "vllm/a-model"


@pytest.mark.parametrize("kind", [f"text/{KEY}", "text/event-stream"])
def test_a_key_that_a_server_says_back_is_in_no_sentence(kind: str) -> None:
    def answer(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(200, kind, Content_Encoding=KEY)

    assert "[key]" in complaint(answer)
    assert KEY.lower() not in complaint(sends_on(f"http://{KEY}/"))
