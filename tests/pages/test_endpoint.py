"""Your own server on the page: who sees it, what it measures, and that nothing is lost or kept too long."""

from collections.abc import Iterator
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.lab.endpoint.record import EndpointRecord
from core.lab.hosting import HOSTED_VARIABLE
from core.ui.lab import endpoint
from tests.lab.endpoint.stand_in import StandIn, stand_in, wait_for

pytestmark = pytest.mark.page
KEY = "sk-typed-on-a-page"


def part() -> None:
    from core.ui.lab import endpoint  # noqa: PLC0415 (the script of a page)

    endpoint.show()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(endpoint, "is_allowed", lambda: True)
    return AppTest.from_function(part, default_timeout=30)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as it:
        yield it


def set_up(page: AppTest, url: str) -> AppTest:
    page.run()
    page.text_input(key="endpoint_url").set_value(url)
    page.number_input(key="endpoint_requests").set_value(4)
    page.number_input(key="endpoint_prompt_tokens").set_value(20)
    page.number_input(key="endpoint_output_tokens").set_value(3)
    return page.run()


def measure(page: AppTest) -> AppTest:
    """Press the button, and look again when the run is over, as the page's timer does."""
    page.button(key="endpoint_start").click().run()
    return look_at_the_end(page)


def look_at_the_end(page: AppTest) -> AppTest:
    run = state(page, "endpoint_run")
    if run is not None:  # else the page has seen its end already
        wait_for(lambda: run.snapshot().is_over)
        page.run()
    assert state(page, "endpoint_run") is None
    return page


def state(page: AppTest, name: str) -> Any:
    return getattr(page.session_state, name, None)


def shown(page: AppTest) -> str:
    assert not page.exception
    return " ".join(str(element.proto.body) for element in page.get("html"))


def test_it_is_off_where_it_is_not_sure_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test's page has no headers, and so no name that the browser used.
    page = AppTest.from_function(part, default_timeout=30).run()
    assert not page.exception
    assert not page.text_input
    assert "python -m core endpoint" in page.code[0].value


def test_a_host_switches_it_off_for_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Host": "localhost:8501"}
    context = type("Context", (), {"ip_address": None, "headers": headers})()
    monkeypatch.setattr(st, "context", context)
    assert endpoint.is_allowed()
    monkeypatch.setenv(HOSTED_VARIABLE, "1")
    assert not endpoint.is_allowed()
    monkeypatch.delenv(HOSTED_VARIABLE)
    headers["X-Forwarded-For"] = "203.0.113.9"
    assert not endpoint.is_allowed()


def test_a_prediction_stands_there_before_anything_is_asked(page: AppTest, server: StandIn) -> None:
    set_up(page, server.url)
    page.selectbox(key="endpoint_model_id").set_value("llama-3.1-8b")
    page.selectbox(key="endpoint_accelerator").set_value("l4").run()
    assert "Predicted for llama-3.1-8b in bf16 on 1 × NVIDIA L4" in shown(page)
    assert "not yet" in shown(page)
    assert server.calls == []


def test_a_run_ends_with_figures_beside_their_prediction(page: AppTest, server: StandIn) -> None:
    set_up(page, server.url)
    page.selectbox(key="endpoint_model_id").set_value("llama-3.1-8b")
    page.selectbox(key="endpoint_accelerator").set_value("l4").run()
    measure(page)
    record = state(page, "endpoint_record")
    assert isinstance(record, EndpointRecord)
    assert record.answered == 8
    assert record.prediction
    assert "8 of 8 requests were answered" in shown(page)
    assert f"a-model at {server.url[7:]}" in shown(page)
    assert page.get("download_button")
    assert "endpoint_gaps_picture" in str(page.get("bidi_component"))


def test_the_key_is_forgotten_with_the_press(page: AppTest, server: StandIn) -> None:
    set_up(page, server.url)
    page.text_input(key="endpoint_key_0").set_value(KEY).run()
    measure(page)
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert page.text_input(key="endpoint_key_1").value == ""
    assert KEY not in repr(page.session_state)
    assert KEY not in shown(page)


def test_a_failed_run_is_a_sentence_and_loses_nothing(page: AppTest, server: StandIn) -> None:
    measure(set_up(page, server.url))
    page.text_input(key="endpoint_url").set_value("http://127.0.0.1:1").run()
    measure(page)
    assert "nothing does (the connection is refused)" in shown(page)
    assert "The figures are those of the run before" in shown(page)
    assert state(page, "endpoint_record").answered == 8
    assert page.text_input(key="endpoint_url").value == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("url", "localhost", "must begin with http"),
        ("url", "http://user:word@host", "must hold no user name"),
        ("model", "a\u202eb", "visible characters"),
    ],
)
def test_a_mistake_stands_beside_the_controls(page: AppTest, field: str, value: str, words: str) -> None:
    page.run()
    page.text_input(key=f"endpoint_{field}").set_value(value).run()
    assert words in page.error[0].value
    assert page.button(key="endpoint_start").disabled


def test_without_a_level_there_is_a_sentence(page: AppTest) -> None:
    page.run()
    page.button_group(key="endpoint_levels").set_value([]).run()
    assert "1 to 6 different numbers; got none" in page.error[0].value


def test_a_run_can_be_stopped(page: AppTest) -> None:
    with stand_in(pause_s=0.02) as it:
        set_up(page, it.url)
        page.number_input(key="endpoint_requests").set_value(64).run()
        page.button(key="endpoint_start").click().run()
        assert page.button(key="endpoint_start").disabled
        assert page.text_input(key="endpoint_url").disabled
        wait_for(lambda: len(it.bodies) >= 5)
        page.button(key="endpoint_stop").click().run()
        look_at_the_end(page)
    assert "You stopped the run" in shown(page)
    assert 1 <= state(page, "endpoint_record").answered < 128
