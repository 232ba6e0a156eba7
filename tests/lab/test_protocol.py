"""What crosses the pipe is checked, whoever sent it."""

import pytest

from core.lab.protocol import MAX_LINE_BYTES, REPLIES, REQUESTS, ProtocolError, decode, encode


def test_a_message_survives_the_pipe() -> None:
    message = {"type": "job", "id": "cpu-1", "kind": "run", "payload": {"prompt": "Grüße\n\u2028 👋"}}
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode(line, REQUESTS) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{}", "cut short"),
        (b"\n", "not JSON"),
        (b"{\n", "not JSON"),
        (b'{"type":"progress","id":"1","phase":"x","fraction":NaN}\n', "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b"[]\n", "not an object with a type"),
        (b'{"type":7}\n', "not an object with a type"),
        (b'{"type":"shell"}\n', "an unknown type"),
        (b'{"type":"step","id":"1","text":"a"}\n', "lacks 'step'"),
        (b'{"type":"done","id":"1","result":[]}\n', "lacks 'result', or it is of another type"),
        (b'{"type":"counted","id":"1","tokens":"3"}\n', "lacks 'tokens'"),
        (b'{"type":"' + b"x" * MAX_LINE_BYTES + b'"}\n', "too long"),
    ],
)
def test_what_is_not_a_message_is_refused(line: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode(line, REPLIES)


def test_a_refusal_never_quotes_what_came() -> None:
    with pytest.raises(ProtocolError) as refused:
        decode(b'{"type":"step","id":"1","text":"a secret prompt"}\n', REPLIES)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", "x" * MAX_LINE_BYTES])
def test_what_a_line_cannot_say_is_not_sent(value: object) -> None:
    with pytest.raises(ProtocolError):
        encode({"type": "done", "id": "1", "result": {"value": value}})
