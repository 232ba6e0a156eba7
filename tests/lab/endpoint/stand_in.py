"""A small HTTP server that behaves as it is told, well or badly, in a thread of its own."""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]
MODEL = "a-model"


@dataclass
class StandIn:
    """What the server is to do, and what it was asked.

    Attributes:
        answer: to a completion. models: to the list of models. pause_s: before each piece.
        calls: method and path of every request. bodies: of the completions. keys: that came with them.
        most_at_once: completions under way together.
    """

    answer: Behaviour
    models: Behaviour
    pause_s: float = 0.0
    url: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    """One request; ``HTTP/1.0`` ends an answer by closing the connection."""

    stand_in: StandIn

    def do_GET(self) -> None:
        self._note()
        self.stand_in.models(self, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note()
        it = self.stand_in
        with it.lock:
            it.bodies.append(body)
            it.at_once += 1
            it.most_at_once = max(it.most_at_once, it.at_once)
        try:
            it.answer(self, body)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):  # the client had enough
            pass
        finally:
            with it.lock:
                it.at_once -= 1

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def send(self, code: int, kind: str, body: str = "", **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())

    def event(self, data: object) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def _note(self) -> None:
        with self.stand_in.lock:
            self.stand_in.calls.append((self.command, self.path))
            self.stand_in.keys.append(self.headers.get("Authorization"))


def lists(*names: str) -> Behaviour:
    data = json.dumps({"object": "list", "data": [{"id": name} for name in names]})
    return lambda handler, _: handler.send(200, "application/json", data)


def streams(handler: Handler, body: dict[str, Any], *, usage: bool = True) -> None:
    """As a well-behaved server does: one token a piece, then how many there were."""
    handler.send(200, "text/event-stream; charset=utf-8")
    chat = "messages" in body
    if chat:
        handler.event({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
    for index in range(body["max_tokens"]):
        handler.stand_in.closing.wait(handler.stand_in.pause_s)
        text = f" t{index}"
        piece = {"delta": {"content": text}} if chat else {"text": text}
        handler.event({"choices": [{**piece, "finish_reason": None}]})
    end: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
    handler.event({"choices": [{**end, "finish_reason": "length"}]})
    if usage:
        prompt = body["messages"][0]["content"] if chat else body["prompt"]
        # This tokenizer has two tokens a word, and its template ten more.
        read = 2 * len(prompt.split()) + 10
        told = {"prompt_tokens": read, "completion_tokens": body["max_tokens"]}
        handler.event({"choices": [], "usage": told})
    handler.event("[DONE]")


def silent_about_usage(handler: Handler, body: dict[str, Any]) -> None:
    streams(handler, body, usage=False)


@contextmanager
def stand_in(
    answer: Behaviour = streams,
    models: Behaviour | None = None,
    *,
    pause_s: float = 0.0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[StandIn]:
    it = StandIn(answer, models or lists(MODEL), pause_s)
    handler = type("OneHandler", (Handler,), {"stand_in": it})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    it.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield it
    finally:
        it.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def wait_for(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
