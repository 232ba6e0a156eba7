"""A measurement in a thread: watched, stopped, one at a time, and without the key."""

import pytest

from core.errors import JobError, RequestError
from core.lab.endpoint import background
from core.lab.endpoint.background import Run
from core.lab.endpoint.request import EndpointRequest
from tests.lab.endpoint.stand_in import stand_in, wait_for

KEY = "sk-in-one-thread-only"


def asked(url: str, requests: int = 4) -> EndpointRequest:
    return EndpointRequest(url, requests=requests, prompt_tokens=8, output_tokens=3)


def ended(run: Run) -> background.Snapshot:
    wait_for(lambda: run.snapshot().is_over)
    return run.snapshot()


def test_it_ends_with_a_record() -> None:
    with stand_in() as it:
        found = ended(background.start(asked(it.url), KEY, None))
    assert found.record
    assert found.record.answered == 4
    assert found.trouble == ""


def test_it_ends_with_a_sentence_and_the_next_can_start() -> None:
    for _ in range(2):
        found = ended(background.start(asked("http://127.0.0.1:1"), KEY, None))
        assert found.record is None
        assert "nothing does" in found.trouble


def test_one_at_a_time_and_a_stopped_one_keeps_its_answers() -> None:
    with stand_in(pause_s=0.003) as it:
        run = background.start(asked(it.url, 500), KEY, None)
        with pytest.raises(JobError, match="One server can be measured at a time"):
            background.start(asked(it.url), KEY, None)
        wait_for(lambda: (run.snapshot().fraction or 0) > 0)
        run.cancel()
        found = ended(run)
        run.cancel()  # nothing happens any more
    assert found.record
    assert found.record.ended == "stopped"


def test_stopped_at_once_it_says_so() -> None:
    with stand_in(pause_s=0.5) as it:
        run = background.start(asked(it.url), KEY, None)
        run.cancel()
        assert "before the first answer" in ended(run).trouble


def test_a_request_outside_its_limits_never_starts() -> None:
    with pytest.raises(RequestError):
        background.start(asked("nowhere"), KEY, None)


def test_the_key_is_not_kept_in_a_run() -> None:
    with stand_in() as it:
        run = background.start(asked(it.url), KEY, None)
        assert KEY not in repr(vars(run))
        ended(run)
    assert set(it.keys) == {f"Bearer {KEY}"}
    assert KEY not in repr(vars(run))
