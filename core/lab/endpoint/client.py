"""One server, asked over HTTP: its models, and one streamed answer with the time of each piece.

Only ``GET /models`` and ``POST`` of one completion are ever sent, to the address that was given: no
redirect is followed, no proxy or password file of this computer is used. How long and how large an answer
may be is bounded. The key stands in one header of the client and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from core.catalog.plain_text import plain_text
from core.errors import EndpointError, RequestError
from core.lab.endpoint import sentences
from core.lab.endpoint.answer import Answer, Piece, piece_of
from core.lab.endpoint.request import EndpointRequest, check_key

#: An answer's pieces have some 300 bytes each; a piece, and what is not a stream, may have so many.
_PIECE_BYTES: Final = 4_000
_LARGEST_EVENT: Final = 200_000
_LARGEST_ANSWER: Final = 500_000
_LARGEST_LIST: Final = 2_000_000
_MOST_MODELS: Final = 2_000
_LONGEST_NAME: Final = 300
#: Keys of fewer characters are stand-ins such as EMPTY, which servers without keys are given.
_SECRET: Final = 12


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, request: EndpointRequest) -> None:
        self._stream, self._limit, self._request = stream, limit, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        async for part in self._stream:
            taken += len(part)
            if taken > self._limit:
                what = f"This answer may have up to {self._limit:,} bytes"
                raise EndpointError(sentences.too_large(what, self._request))
            yield part

    async def aclose(self) -> None:
        """Close the stream behind it."""
        await self._stream.aclose()


class EndpointClient:
    """A connection to one server; use it in ``async with``.

    Args:
        request: where, and the limits. key: sent as a bearer token; empty for none.

    Raises:
        RequestError: the key cannot stand in a header, or the trusted authorities cannot be read.
    """

    def __init__(self, request: EndpointRequest, key: str = "") -> None:
        check_key(key)
        self._request, self._key = request, key
        self.server = ""
        self._http = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})},
            follow_redirects=False,
            trust_env=False,
            verify=_authorities(),
            timeout=httpx2.Timeout(request.silence_s, connect=request.connect_s, pool=None),
            limits=httpx2.Limits(max_connections=max(request.levels) + 1),
        )

    def __repr__(self) -> str:
        return f"EndpointClient({self._request.host!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def models(self) -> tuple[str, ...] | None:
        """The models that the server lists; None where it has no list.

        Raises:
            EndpointError: it does not answer, refuses the key, or sends something else.
        """
        try:
            async with (
                asyncio.timeout(self._request.silence_s),
                self._http.stream("GET", f"{self._request.base}/models") as response,
            ):
                self.server = self._shown(response.headers.get("server", ""), 80)
                if response.status_code in {404, 405, 501}:
                    return None
                await self._check_status(response)
                body = await self._body(response, _LARGEST_LIST)
        except TimeoutError:
            raise EndpointError(sentences.failure(httpx2.ReadTimeout(""), self._request)) from None
        except httpx2.HTTPError as problem:
            raise EndpointError(sentences.failure(problem, self._request)) from None
        return self._names(body, response.headers.get("content-type", ""))

    async def complete(self, prompt: str, model: str, output_tokens: int) -> Answer:
        """Ask for one answer and time its pieces; seconds count from the moment it is sent.

        Raises:
            EndpointError: there is no whole answer, as one sentence.
        """
        start = time.perf_counter()
        answer = Answer(limit=output_tokens)
        try:
            async with asyncio.timeout(self._request.request_s):
                await self._stream(self._payload(prompt, model, output_tokens), answer, start)
        except TimeoutError:
            raise EndpointError(sentences.too_slow(self._request)) from None
        except httpx2.SSEError:
            what = f"An event of an answer may have up to {_LARGEST_EVENT:,} bytes"
            raise EndpointError(sentences.too_large(what, self._request)) from None
        except httpx2.HTTPError as problem:
            raise EndpointError(sentences.failure(problem, self._request)) from None
        if not answer.pieces_s:
            raise EndpointError(sentences.empty(self._request))
        if not answer.is_ended:  # cut short where HTTP cannot tell: the end of the connection is the end
            raise EndpointError(sentences.unended(self._request))
        return answer

    def _payload(self, prompt: str, model: str, output_tokens: int) -> tuple[str, dict[str, Any]]:
        chat = self._request.api == "chat"
        asked = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        path = "chat/completions" if chat else "completions"
        body = {
            **asked,
            "model": model,
            "max_tokens": output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"ignore_eos": True} if self._request.full_length else {}),
        }
        return f"{self._request.base}/{path}", body

    async def _stream(self, payload: tuple[str, dict[str, Any]], answer: Answer, start: float) -> None:
        address, body = payload
        async with self._http.stream("POST", address, json=body) as response:
            await self._check_status(response)
            kind = self._shown(response.headers.get("content-type", ""), 80)
            if not kind.lower().startswith("text/event-stream"):
                raise EndpointError(sentences.not_a_stream(kind.lower(), self._request))
            self._bound(response, _LARGEST_ANSWER + _PIECE_BYTES * answer.limit)
            response.encoding = "utf-8"  # events have no other, whatever codec the server names
            async for event in httpx2.EventSource(response, _LARGEST_EVENT):
                now = time.perf_counter() - start
                if event.data.strip() == "[DONE]":
                    answer.is_ended = True
                    return
                answer.take(self._piece(event.data), now)
                if answer.is_too_long:
                    what = f"An answer may have up to the {answer.limit:,} tokens that were asked for"
                    raise EndpointError(sentences.too_large(what, self._request))

    def _piece(self, data: str) -> Piece:
        try:
            parsed = json.loads(data)
            if isinstance(parsed, dict) and (error := parsed.get("error")):
                said = error.get("message", "") if isinstance(error, dict) else error
                raise EndpointError(sentences.told(sentences.quoted(str(said), self._key), self._request))
            return piece_of(parsed)
        except (ValueError, RecursionError):
            short = sentences.quoted(data, self._key)[:60]
            raise EndpointError(sentences.malformed(short, self._request)) from None

    async def _check_status(self, response: httpx2.Response) -> None:
        code = response.status_code
        if 200 <= code < 300:
            return
        said, location = "", ""
        if 300 <= code < 400:
            target = _host_of(self._shown(response.headers.get("location", ""), 2_000))
            location = f" ({plain_text(target, 80)})" if target else ""
        elif "json" in response.headers.get("content-type", ""):
            said = sentences.quoted(_message(await self._body(response, _LARGEST_EVENT)), self._key)
        raise EndpointError(sentences.status(code, said, self._request, location))

    async def _body(self, response: httpx2.Response, limit: int) -> bytes:
        self._bound(response, limit)
        return await response.aread()

    def _bound(self, response: httpx2.Response, limit: int) -> None:
        coding = response.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":  # a few bytes could unfold into very many
            raise EndpointError(
                sentences.not_a_stream(f"{self._shown(coding, 60)} compression", self._request)
            )
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, limit, self._request)

    def _names(self, body: bytes, kind: str) -> tuple[str, ...]:
        try:
            listed = json.loads(body)["data"]
            names = [entry["id"] for entry in listed[:_MOST_MODELS]]
        except (ValueError, RecursionError, KeyError, TypeError):
            if "html" in kind.lower():
                raise EndpointError(sentences.not_a_stream("text/html", self._request)) from None
            short = sentences.quoted(body[:400].decode("utf-8", "replace"), self._key)[:60]
            raise EndpointError(sentences.malformed_list(short, self._request)) from None
        return tuple(dict.fromkeys(self._shown(str(name), _LONGEST_NAME) for name in names))

    def _shown(self, text: str, longest: int) -> str:
        """What a server calls something, as it may be shown and kept."""
        is_secret = len(self._key) >= _SECRET  # a shorter one may well be a part of a model's name
        return plain_text(text.replace(self._key, "[key]") if is_secret else text, longest)


def _authorities() -> ssl.SSLContext:
    """Whose certificates are trusted: the system's authorities, or those of ``SSL_CERT_FILE``."""
    try:
        return httpx2.create_ssl_context()
    except OSError as problem:
        raise RequestError(
            "SSL_CERT_FILE must name a file of certificates that can be read; the one it names cannot be "
            f"({plain_text(problem.strerror or str(problem), 80)}). Correct it, or unset it."
        ) from None


def _host_of(location: str) -> str:
    """The host that a redirect names; empty where it names none that can be."""
    try:
        return httpx2.URL(location).host
    except httpx2.InvalidURL:
        return ""


def _message(body: bytes) -> str:
    """What an error's JSON says; empty where it says nothing."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = data.get("error", data) if isinstance(data, dict) else data
    said = error.get("message", error.get("detail", "")) if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""
