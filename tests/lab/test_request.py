"""A request outside its limits is refused with one sentence."""

from dataclasses import replace
from typing import Any

import pytest

from core.errors import FormatError, RequestError
from core.lab.request import MAX_PROMPT_CHARACTERS, RunRequest


def test_a_request_survives_json() -> None:
    request = RunRequest(prompt="Hello", temperature=0.7, top_k=40, seed=7)
    assert RunRequest.from_json(request.to_json()) == request


def test_whole_numbers_are_fine_where_a_fraction_is_allowed() -> None:
    assert RunRequest.from_json({"temperature": 1}).temperature == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "  \n"}, "The prompt is empty. Type a few words for the model to continue."),
        ({"prompt": "a" * (MAX_PROMPT_CHARACTERS + 1)}, "up to 20,000 characters; this one has 20,001"),
        ({"prompt": "half \ud83d"}, "The prompt must be text; this one holds half a character"),
        ({"prompt": "a\0b"}, "or a zero byte. Remove it and type it anew."),
        ({"cache": "paged!"}, "The cache must be one of contiguous, paged, none; got 'paged!'"),
        ({"device": "tpu"}, "The device must be one of cpu, cuda; got 'tpu'"),
        ({"max_tokens": 0}, "max_tokens must be from 1 to 512; got 0"),
        ({"temperature": float("nan")}, "temperature must be from 0 to 5; got nan"),
        ({"top_p": 0.0}, "top_p must be from 0.01 to 1; got 0.0"),
        ({"seed": -1}, "seed must be from 0 to"),
    ],
)
def test_each_limit_has_its_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        replace(RunRequest(), **change).validate()


def test_formats_are_checked_for_their_use() -> None:
    with pytest.raises(FormatError, match="A format for kv must be one of"):
        replace(RunRequest(), kv="fp8").validate()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["prompt"], "A request must be an object; got list."),
        ({"path": "/etc/passwd"}, "A request has no field 'path'"),
        ({"prompt": 3}, "The field 'prompt' must be str; got int."),
        ({"raw": 1}, "The field 'raw' must be bool; got int."),
        ({"max_tokens": True}, "The field 'max_tokens' must be int; got bool."),
        ({"temperature": True}, "The field 'temperature' must be float; got bool."),
    ],
)
def test_a_malformed_request_is_refused(data: object, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        RunRequest.from_json(data)
