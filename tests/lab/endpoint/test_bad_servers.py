"""Servers that misbehave: one sentence each, in time, within bounds, and without the key."""

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import EndpointError, RequestError
from core.lab.endpoint.client import EndpointClient
from core.lab.endpoint.load import measure
from core.lab.endpoint.record import dumps
from core.lab.endpoint.request import EndpointRequest
from tests.lab.endpoint.stand_in import Behaviour, Handler, lists, stand_in, streams

REQUEST = EndpointRequest(
    requests=2, prompt_tokens=8, output_tokens=4, silence_s=5.0, request_s=5.0, connect_s=2.0
)
#: Patience for servers that say nothing; any other is given more, as a busy host is slow to speak.
SHORT: dict[str, Any] = {"silence_s": 0.4}
KEY = "sk-a-very-secret-key"


def complaint(url: str, **changes: Any) -> str:
    """The one sentence that measuring a server ends with."""
    with pytest.raises(EndpointError) as caught:
        asyncio.run(measure(replace(REQUEST, url=url, **changes), KEY))
    said = str(caught.value)
    assert KEY not in said
    assert said.endswith(".")
    assert "\n" not in said
    return said


def assert_says(said: str, words: str) -> None:
    assert re.search(words, said), said


def replies(code: int, kind: str, body: str = "", **headers: str) -> Behaviour:
    return lambda handler, _: handler.send(code, kind, body, **headers)


def events(*data: str, kind: str = "text/event-stream") -> Behaviour:
    def behave(handler: Handler, _: dict[str, Any]) -> None:
        handler.send(200, kind)
        for one in data:
            handler.event(one)

    return behave


def endless(handler: Handler, _: dict[str, Any]) -> None:
    handler.send(200, "text/event-stream")
    while not handler.stand_in.closing.is_set():
        handler.event({"choices": [{"text": "and on", "finish_reason": None}]})


def endless_comments(handler: Handler, _: dict[str, Any]) -> None:
    handler.send(200, "text/event-stream")
    while not handler.stand_in.closing.is_set():
        handler.wfile.write(b": still there\n" * 1000)


def huge_line(handler: Handler, _: dict[str, Any]) -> None:
    handler.send(200, "text/event-stream")
    handler.wfile.write(b"data: ")
    while not handler.stand_in.closing.is_set():
        handler.wfile.write(b"x" * 65_536)


def silent(handler: Handler, _: dict[str, Any]) -> None:
    handler.send(200, "text/event-stream")
    handler.stand_in.closing.wait(10)


def cut_off(handler: Handler, _: dict[str, Any]) -> None:
    handler.send(200, "text/event-stream", Content_Length="1000")
    handler.event({"choices": [{"text": "a", "finish_reason": None}]})


JSON_ANSWER = '{"choices": [{"text": "all of it", "finish_reason": "stop"}]}'


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (replies(200, "application/json", JSON_ANSWER), "must stream its answer; .* sent all of it at once"),
        (replies(200, "text/html", "<html>hello</html>"), "sent a web page"),
        (replies(200, "text/plain", "hello"), "must send events .* sent text/plain"),
        (replies(401, "application/json", f'{{"error": "bad key {KEY}"}}'), r"refuses it \(HTTP 401\)"),
        (replies(403, "text/html", "<h1>no</h1>"), r"refuses it \(HTTP 403\)"),
        (replies(404, "application/json", '{"detail": "no such path"}'), r"HTTP 404 \(no such path\)"),
        (replies(422, "application/json", '{"error": {"message": "extra field"}}'), "let answers end early"),
        (replies(429, "application/json", '{"error": {"message": "slow down"}}'), "they are too many"),
        (replies(500, "text/html", "<h1>oops</h1>"), r"must not fail; .* did \(HTTP 500\)"),
        (replies(503, "application/json", "not json"), r"did \(HTTP 503\)"),
        (replies(400, "application/json", f'{{"message": "{KEY}"}}'), r"HTTP 400 \(\[key\]\)"),
        (
            replies(302, "text/html", Location="http://elsewhere.test/x?y"),
            r"another address \(elsewhere.test\)",
        ),
        (events("{not json"), "must be a JSON object with a list of choices"),
        (events('["a list"]'), "must be a JSON object with a list of choices"),
        (events('{"choices": ["text"]}'), "must be a JSON object"),
        (events('{"choices": [{"nothing": 1}]}'), "must be a JSON object"),
        (events(f'{{"{KEY}": 1}}'), r"sent '\{\"\[key\]\": 1\}'"),
        (events('{"error": {"message": "CUDA out of memory"}}'), r"an error \(CUDA out of memory\)"),
        (events("[DONE]"), "ended it without one"),
        (events(), "ended it without one"),
        (silent, "must send something every"),
        (cut_off, "broke the connection off"),
        (endless, "up to the 4 tokens that were asked for"),
        (endless_comments, "may have up to 516,000 bytes"),
        (
            events('{"choices": [{"text": "a"}], "usage": {"completion_tokens": 9999999}}'),
            "up to the 4 tokens that were asked for",
        ),
        (huge_line, "may have up to 200,000 bytes"),
        (
            replies(200, "text/event-stream", "\x1f\x8b", Content_Encoding="gzip"),
            "sent gzip compression",
        ),
    ],
)
def test_a_bad_answer_is_one_sentence(behaviour: Behaviour, words: str) -> None:
    with stand_in(behaviour) as it:
        assert_says(complaint(it.url, **(SHORT if behaviour is silent else {})), words)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (replies(200, "text/html", "<html>"), "sent a web page"),
        (replies(200, "application/json", "[1, 2]"), "must be a JSON object with `data`"),
        (replies(200, "application/json", "x" * 3_000_000), "may have up to 2,000,000 bytes"),
        (replies(401, "application/json", "{}"), "HTTP 401"),
        (replies(301, "text/html", Location="/elsewhere"), "never followed"),
        (silent, "must send something every"),
    ],
)
def test_a_bad_list_of_models_is_one_sentence(behaviour: Behaviour, words: str) -> None:
    with stand_in(models=behaviour) as it:
        assert_says(complaint(it.url, **(SHORT if behaviour is silent else {})), words)
    assert it.bodies == []


@pytest.mark.parametrize("charset", ["hex", "rot13", "utf-16", "idna", "undefined", "bogus"])
def test_events_are_read_as_utf_8_whatever_is_named(charset: str) -> None:
    piece = '{"choices": [{"text": "\u00fc", "finish_reason": null}]}'
    with stand_in(events(piece, "[DONE]", kind=f"text/event-stream; charset={charset}")) as it:
        record = asyncio.run(measure(replace(REQUEST, url=it.url)))
    assert record.answered == 2


def test_nobody_answers() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert_says(complaint(f"http://127.0.0.1:{port}"), "nothing does \\(the connection is refused\\)")


def test_a_server_that_does_not_speak_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # The connection is accepted by the system, and nobody ever reads it.
        port = server.getsockname()[1]
        assert_says(complaint(f"http://127.0.0.1:{port}", **SHORT), "must send something every")


def test_https_at_a_server_of_http() -> None:
    with stand_in() as it:
        assert_says(complaint(it.url.replace("http:", "https:")), "A server must answer|broke the connection")


def test_a_slow_answer_is_cut_off() -> None:
    with stand_in(pause_s=0.3) as it:
        assert_says(complaint(it.url, request_s=0.5), "A request may take up to 500 ms")


def test_a_redirect_is_not_followed_even_with_a_key() -> None:
    with stand_in() as other:
        away = replies(307, "text/plain", Location=f"{other.url}/v1/completions")
        with stand_in(away) as it:
            assert_says(complaint(it.url), "never followed")
    assert other.calls == []


def test_a_certificate_that_nobody_signed(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("A certificate is made with openssl, which is not installed.")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {key} -out {certificate}"
    named = "-days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(["openssl", *made.split(), *named.split()], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with stand_in(tls=tls) as it:
        said = complaint(it.url)
        assert_says(
            said, r"must be signed by an authority .* \(self-signed certificate\)\. Set SSL_CERT_FILE"
        )
        assert it.calls == []
        with pytest.MonkeyPatch.context() as patch:  # what the sentence says to do
            patch.setenv("SSL_CERT_FILE", str(certificate))
            record = asyncio.run(measure(replace(REQUEST, url=it.url)))
    assert record.answered == 2


def test_a_file_of_authorities_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file")
    with pytest.raises(RequestError, match="SSL_CERT_FILE must name a file"):
        EndpointClient(REQUEST)


def test_the_key_is_sent_and_stands_nowhere_else() -> None:
    with stand_in() as it:
        request = replace(REQUEST, url=it.url)
        record = asyncio.run(measure(request, KEY))
    assert set(it.keys) == {f"Bearer {KEY}"}
    assert KEY not in dumps(record) + repr(record) + repr(request) + repr(EndpointClient(request, KEY))


def test_without_a_key_none_is_sent() -> None:
    with stand_in() as it:
        asyncio.run(measure(replace(REQUEST, url=it.url)))
    assert set(it.keys) == {None}


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in() as proxy, stand_in() as it:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        asyncio.run(measure(replace(REQUEST, url=it.url)))
    assert proxy.calls == []


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "ü", "x" * 5000])
def test_a_key_that_cannot_be_one_is_not_repeated(key: str) -> None:
    with pytest.raises(RequestError, match="A key must have") as caught:
        EndpointClient(REQUEST, key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:8000", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("http://", "must begin with http"),
        ("http://user:hunter2@host/v1", "must hold no user name"),
        ("http://host/v1?api_key=abc", "must hold no user name"),
        ("http://host/v1#abc", "must hold no user name"),
        ("http://host:99999", "a port from 1 to 65,535"),
        ("http://ho st", "without spaces"),
        ("http://host/\n", "without spaces"),
        ("http://[::1", "a valid host"),
        ("http://[v1.x]:1", "a valid host"),
        ("http://\u2603.test", "a valid host"),
        ("", "must begin with http"),
        ("http://h/" + "a" * 3000, "up to 2,000 characters"),
    ],
)
def test_a_bad_address_is_one_sentence_that_repeats_no_secret(url: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        replace(REQUEST, url=url).validate()
    assert "hunter2" not in str(caught.value)
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"levels": ()}, "1 to 6 different numbers; got none"),
        ({"levels": (1, 1)}, "different numbers"),
        ({"levels": (0,)}, "from 1 to 256"),
        ({"levels": (4,), "requests": 2}, "as many requests as are made at once, 4; got 2"),
        ({"requests": 0}, "number of requests must be from 1 to 512"),
        ({"prompt_tokens": 40_000}, "number of prompt tokens"),
        ({"output_tokens": 4096, "requests": 512}, "up to 100,000 tokens"),
        ({"silence_s": float("nan")}, "longest silence"),
        ({"api": "telepathy"}, "must be one of completions, chat"),
        ({"model": "a\nb"}, "visible characters"),
    ],
)
def test_a_request_outside_its_limits_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        replace(REQUEST, **changes).validate()


def test_a_long_list_of_models_names_those_that_are_near() -> None:
    with stand_in(streams, lists(*(f"model-{index}" for index in range(20)), "llama-3")) as it:
        assert_says(
            complaint(it.url, model="lama-3"), "the 21 that it lists, for example llama-3; got 'lama-3'"
        )
