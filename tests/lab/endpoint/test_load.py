"""A well-behaved server: what is asked of it, what is measured, and what a record holds."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from core.errors import EndpointError, RecordError
from core.lab.checked_json import Reader
from core.lab.endpoint.load import measure
from core.lab.endpoint.notes import is_blurred, notes
from core.lab.endpoint.record import EndpointRecord, dumps, loads
from core.lab.endpoint.request import EndpointRequest
from core.lab.endpoint.row import Level, Row
from core.lab.sealed_json import checksum
from tests.lab.endpoint.stand_in import (
    MODEL,
    Handler,
    lists,
    silent_about_usage,
    stand_in,
    streams,
    wait_for,
)

SMALL = EndpointRequest(levels=(1, 3), requests=6, prompt_tokens=50, output_tokens=4)


def at(url: str, **changes: Any) -> EndpointRequest:
    return replace(SMALL, url=url, **changes)


def test_every_request_is_measured_and_the_warm_up_does_not_count() -> None:
    with stand_in(pause_s=0.002) as it:
        record = asyncio.run(measure(at(it.url)))
    assert [level.concurrency for level in record.levels] == [1, 3]
    assert all(len(level.whole) == 6 for level in record.levels)
    assert len(it.bodies) == 2 + 12
    for row in (row for level in record.levels for row in level.rows):
        assert (row.output_tokens, row.counted, len(row.pieces_s)) == (4, "usage", 4)
        assert 0 < row.ttft_s <= row.last_s
        assert row.tpot_s == pytest.approx((row.last_s - row.ttft_s) / 3)
    assert record.server.model == MODEL
    assert record.ended == "complete"


def test_the_loop_is_closed_at_each_concurrency() -> None:
    with stand_in(pause_s=0.005) as it:
        asyncio.run(measure(at(it.url, levels=(3,))))
        assert it.most_at_once == 3


def test_prompts_are_seeded_differ_and_have_the_tokens_that_were_asked_for() -> None:
    said = []
    for seed in (7, 7, 8):
        with stand_in() as it:
            record = asyncio.run(measure(at(it.url, seed=seed, levels=(1,))))
        said.append([body["prompt"] for body in it.bodies])
        # Two tokens a word and ten of the template, which the warm-up found out.
        assert [row.prompt_tokens for row in record.levels[0].rows] == [50] * 6
        assert len({text[:30] for text in said[-1]}) == len(said[-1])
    assert said[0] == said[1]
    assert not set(said[0]) & set(said[2])


def test_what_is_asked_is_a_greedy_stream_of_full_length() -> None:
    with stand_in() as it:
        asyncio.run(measure(at(it.url, levels=(1,))))
        asyncio.run(measure(at(f"{it.url}/v1", levels=(1,), api="chat", full_length=False)))
    assert set(it.calls) == {
        ("GET", "/v1/models"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/chat/completions"),
    }
    first, last = it.bodies[2], it.bodies[-1]
    assert first["stream"] is True
    assert (first["temperature"], first["max_tokens"], first["model"]) == (0, 4, MODEL)
    assert first["ignore_eos"] is True
    assert "ignore_eos" not in last
    assert last["messages"][0]["role"] == "user"


def test_a_chats_event_without_text_is_no_token() -> None:
    with stand_in(pause_s=0.001) as it:
        record = asyncio.run(measure(at(it.url, levels=(1,), api="chat")))
    assert all(len(row.pieces_s) == 4 for row in record.levels[0].rows)


def test_without_usage_pieces_are_counted_and_labelled_so() -> None:
    with stand_in(silent_about_usage) as it:
        record = asyncio.run(measure(at(it.url, levels=(1,))))
    assert {(row.counted, row.output_tokens) for row in record.levels[0].rows} == {("pieces", 4)}
    said = " ".join(notes(record))
    assert "does not say how many tokens it wrote" in said
    assert "does not count prompt tokens" in said


def test_figures_follow_from_the_rows() -> None:
    rows = (
        Row(0.0, (0.1, 0.2, 0.4), 0.4, 3, "usage", 10),
        Row(0.0, (0.3, 0.4, 0.5), 0.5, 3, "usage", 20),
        Row(0.5, error="It failed."),
    )
    summary = Level(2, rows).summary()
    assert (summary["answered"], summary["failed"], summary["output_tokens"]) == (2, 1, 6)
    assert summary["ttft_s"]["p50"] == pytest.approx(0.2)
    assert summary["tpot_s"]["p50"] == pytest.approx((0.15 + 0.1) / 2)
    assert summary["itl_s"]["p50"] == pytest.approx(0.1)
    assert summary["itl_s"]["p99"] == pytest.approx(0.197)
    assert summary["output_tokens_per_s"] == pytest.approx(12.0)
    assert summary["requests_per_s"] == pytest.approx(4.0)
    assert summary["prompt_tokens_mean"] == 15.0


def test_an_error_of_one_request_costs_that_request_only() -> None:
    def sometimes(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.stand_in.bodies) % 4 == 0:
            handler.send(500, "application/json", '{"error": {"message": "out of memory"}}')
        else:
            streams(handler, body)

    with stand_in(sometimes) as it:
        record = asyncio.run(measure(at(it.url, levels=(1,))))
    level = record.levels[0]
    assert (len(level.whole), len(level.rows)) == (4, 6)
    assert level.errors == (
        f"The server must not fail; {it.url[7:]} did (HTTP 500 (out of memory)). Look at the server's log.",
    )
    assert "2 of 6 requests failed" in notes(record)[0]
    assert loads(dumps(record)) == record


def test_a_run_that_is_stopped_keeps_what_was_answered() -> None:
    async def stopped(url: str) -> EndpointRecord:
        task = asyncio.ensure_future(measure(at(url, levels=(1,), requests=300)))
        while len(it.bodies) < 6:
            await asyncio.sleep(0.002)
        task.cancel()
        return await task

    with stand_in(pause_s=0.002) as it:
        record = asyncio.run(stopped(it.url))
    assert record.ended == "stopped"
    assert 1 <= record.answered < 300
    assert f"{record.answered} of 300 requests were answered, and are kept" in notes(record)[0]
    assert loads(dumps(record)) == record


def test_a_run_ends_with_its_time_and_keeps_what_was_answered() -> None:
    with stand_in(pause_s=0.01) as it:
        record = asyncio.run(measure(at(it.url, levels=(1,), requests=400, run_s=0.8)))
    assert record.ended == "out of time"
    assert 1 <= record.answered < 400


def test_a_run_without_time_for_an_answer_says_so() -> None:
    with (
        stand_in(pause_s=0.5) as it,
        pytest.raises(EndpointError, match="must be given the time for one answer"),
    ):
        asyncio.run(measure(at(it.url, run_s=0.1)))


def test_the_only_model_is_taken_and_a_wrong_name_is_told_with_the_known_ones() -> None:
    with stand_in(models=lists("one", "two")) as it:
        with pytest.raises(EndpointError, match=r"serves several: one, two. Name one"):
            asyncio.run(measure(at(it.url)))
        with pytest.raises(EndpointError, match=r"serves: one, two; got 'three'. Choose one"):
            asyncio.run(measure(at(it.url, model="three")))
        assert it.bodies == []
        record = asyncio.run(measure(at(it.url, model="two", levels=(1,))))
    assert record.request.model == "two"


def test_a_server_without_a_list_of_models_needs_a_name() -> None:
    def unknown(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(404, "application/json", "{}")

    with stand_in(models=unknown) as it:
        with pytest.raises(EndpointError, match=r"has no list of them at http://.*/models\. Name"):
            asyncio.run(measure(at(it.url)))
        record = asyncio.run(measure(at(it.url, model="mine", levels=(1,))))
    assert record.server.round_trip_s is None
    assert loads(dumps(record)) == record


@pytest.mark.parametrize(("late_s", "is_said"), [(None, False), (0.001, False), (0.09, True)])
def test_a_busy_client_is_said(late_s: float | None, is_said: bool) -> None:
    with stand_in(pause_s=0.02) as it:
        record = replace(asyncio.run(measure(at(it.url, levels=(1,)))), client_late_p99_s=late_s)
    assert is_blurred(record) is is_said
    assert ("This computer was busy" in " ".join(notes(record))) is is_said


def test_a_cache_of_the_server_is_said() -> None:
    def cached(handler: Handler, body: dict[str, Any]) -> None:
        handler.send(200, "text/event-stream")
        details = {"cached_tokens": 25}
        told = {"prompt_tokens": 50, "completion_tokens": 1, "prompt_tokens_details": details}
        handler.event({"choices": [{"text": "a", "finish_reason": "length"}], "usage": told})

    with stand_in(cached) as it:
        record = asyncio.run(measure(at(it.url, levels=(1,))))
    assert "50% of the prompt tokens came from a cache" in " ".join(notes(record))
    assert "Answers had 1.00 tokens on average; 4 were asked for" in " ".join(notes(record))


def test_progress_reaches_the_end() -> None:
    said: list[tuple[str, float | None]] = []
    with stand_in() as it:
        asyncio.run(measure(at(it.url), progress=lambda phase, share: said.append((phase, share))))
    assert said[0] == ("asking the server", None)
    assert said[-1] == ("2 of 2 levels", 1.0)


@pytest.fixture(scope="module")
def record() -> EndpointRecord:
    with stand_in(pause_s=0.001) as it:
        return asyncio.run(measure(at(f"{it.url}/a/secret/path/v1", model=MODEL)))


def test_a_record_keeps_of_the_address_its_origin_only(record: EndpointRecord) -> None:
    assert "secret" not in dumps(record)
    assert record.request.url.startswith("http://127.0.0.1:")


def test_a_record_comes_back_as_it_was(record: EndpointRecord) -> None:
    assert loads(dumps(record)) == record


def test_a_record_that_was_changed_is_refused(record: EndpointRecord) -> None:
    data = record.to_json()
    data["levels"][0]["rows"][0]["last_s"] += 1.0
    with pytest.raises(RecordError, match="its checksum differs"):
        EndpointRecord.from_json(data)
    del data["checksum"]
    with pytest.raises(RecordError, match="what follows from its rows"):
        EndpointRecord.from_json({**data, "checksum": checksum(data)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ended", "somehow"),
        ("levels", []),
        ("created_at", "today"),
        ("client_late_p99_s", -1.0),
        ("version", 99),
    ],
)
def test_a_record_with_an_impossible_value_is_refused(
    record: EndpointRecord, name: str, value: object
) -> None:
    data = {key: kept for key, kept in record.to_json().items() if key != "checksum"}
    data[name] = value
    if name == "levels":
        data["request"]["levels"] = []
    with pytest.raises(RecordError):
        EndpointRecord.from_json({**data, "checksum": checksum(data)})


@pytest.mark.parametrize(
    "change",
    [
        {"pieces_s": []},
        {"pieces_s": [0.2, 0.1]},
        {"last_s": 0.05},
        {"output_tokens": 0},
        {"counted": "guessed"},
        {"error": "both"},
        {"start_s": float("1e9")},
    ],
)
def test_a_row_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    row = json.loads(json.dumps({**row_json(), **change}))
    with pytest.raises(RecordError):
        Row.from_reader(Reader(row, "A row"))


def row_json() -> dict[str, object]:
    return {
        "start_s": 0.0,
        "pieces_s": [0.1, 0.2],
        "last_s": 0.2,
        "output_tokens": 2,
        "counted": "usage",
        "prompt_tokens": None,
        "cached_tokens": 3,
        "error": "",
    }


def test_stopping_before_anything_was_answered_keeps_nothing() -> None:
    async def stopped(url: str) -> None:
        task = asyncio.ensure_future(measure(at(url)))
        await asyncio.to_thread(wait_for, lambda: len(it.bodies) > 0)
        task.cancel()
        await task

    with stand_in(pause_s=0.5) as it, pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped(it.url))
