"""What a server's misbehaviour is called: what must hold, what came, what to do; one sentence each.

What a server says is quoted short, on one line, and without the key.
"""

from __future__ import annotations

import ssl
from typing import Final

import httpx2

from core.catalog.near_names import near_names
from core.catalog.plain_text import plain_text
from core.lab.endpoint.request import EndpointRequest
from core.units import format_seconds

_QUOTED: Final = 200
_NAMED: Final = 8


def quoted(text: str, key: str) -> str:
    """What a server said, short and without the key.

    >>> quoted("no such key: sk-1", "sk-1")
    'no such key: [key]'
    """
    return plain_text(text.replace(key, "[key]") if key else text, _QUOTED)


def failure(problem: httpx2.HTTPError, request: EndpointRequest) -> str:
    """What went wrong on the way to a server, or on the way back."""
    host = request.host
    if (bad := _certificate(problem)) is not None:
        return (
            f"The certificate of {host} must be signed by an authority that this computer trusts; it is not "
            f"({bad}). Set SSL_CERT_FILE to the file of its authority and start again."
        )
    if isinstance(problem, httpx2.ConnectTimeout):
        return (
            f"The server must accept within {format_seconds(request.connect_s)}; {host} did not. Check the "
            "address, the port and the firewall."
        )
    if isinstance(problem, httpx2.TimeoutException):
        return (
            f"The server must send something every {format_seconds(request.silence_s)}; {host} was silent "
            "for longer. Ask for a shorter prompt or fewer requests at once, or allow a longer silence."
        )
    if isinstance(problem, httpx2.ConnectError):
        return (
            f"A server must answer at {host}; nothing does ({_reason(problem)}). Start it, or check the "
            "address and the port."
        )
    return (
        f"The server must finish its answer; {host} broke the connection off. Look at the server's log, and "
        "check that http or https is right."
    )


def status(code: int, said: str, request: EndpointRequest, location: str = "") -> str:
    """An answer whose HTTP status is no success."""
    host, after = request.host, f" ({said})" if said else ""
    if 300 <= code < 400:
        return (
            f"The server must answer itself; {host} sends on to another address{location}, which is never "
            "followed. Give the address of the server itself."
        )
    if code in {401, 403}:
        return f"The server must accept the key; {host} refuses it (HTTP {code}). Give a key that it knows."
    if code == 404:
        return (
            f"The server must know the path and the model; {host} does not (HTTP 404{after}). Check the "
            "model's name, that the address ends in /v1, and the interface: completions or chat."
        )
    if code == 429:
        return (
            f"The server must take these requests; {host} says they are too many (HTTP 429{after}). Wait, or "
            "ask for fewer at once."
        )
    if code < 500:
        unknown = " If it knows no field `ignore_eos`, let answers end early." if request.full_length else ""
        return (
            f"The server must accept the request; {host} refuses it (HTTP {code}{after}). Check its length "
            f"and the model's name.{unknown}"
        )
    return f"The server must not fail; {host} did (HTTP {code}{after}). Look at the server's log."


def not_a_stream(kind: str, request: EndpointRequest) -> str:
    """An answer of another kind than a stream of events."""
    host = request.host
    if "html" in kind:
        return (
            f"The server must send events; {host} sent a web page. This is likely the address of a website: "
            "give the one of its API, which often ends in /v1."
        )
    if "json" in kind:
        return (
            f"The server must stream its answer; {host} sent all of it at once. Times of tokens cannot be "
            "measured then: switch streaming on at the server."
        )
    return (
        f"The server must send events (text/event-stream); {host} sent {plain_text(kind, 60) or 'no type'}. "
        "Give the address of an OpenAI-compatible API."
    )


def malformed(text: str, request: EndpointRequest) -> str:
    """An event that holds no piece of an answer."""
    return (
        f"Each event must be a JSON object with a list of choices; {request.host} sent {text!r}. Give the "
        "address of an OpenAI-compatible API."
    )


def malformed_list(text: str, request: EndpointRequest) -> str:
    """A list of models that is none."""
    return (
        f"The list of models must be a JSON object with `data`; {request.host} sent {text!r}. Give the "
        "address of an OpenAI-compatible API, which often ends in /v1."
    )


def told(said: str, request: EndpointRequest) -> str:
    """An error that a server reports inside its stream."""
    return (
        f"The server must finish its answer; {request.host} stopped with an error "
        f"({said or 'without words'}). Look at the server's log."
    )


def too_large(what: str, request: EndpointRequest) -> str:
    """More bytes than an answer can need."""
    return (
        f"{what}; {request.host} sent more, and was cut off. Check that it keeps to max_tokens and is an "
        "OpenAI-compatible API."
    )


def too_slow(request: EndpointRequest) -> str:
    """A request that took longer than one may."""
    return (
        f"A request may take up to {format_seconds(request.request_s)}; {request.host} took longer, and was "
        "cut off. Ask for fewer tokens or fewer requests at once."
    )


def empty(request: EndpointRequest) -> str:
    """A stream without a token."""
    return (
        f"An answer must have a token or more; {request.host} ended it without one. Check the model, and "
        "whether the prompt fits its context."
    )


def unended(request: EndpointRequest) -> str:
    """A stream that stops without its end."""
    return (
        f"An answer must end with a reason or [DONE]; {request.host} closed the connection before. Look at "
        "the server's log, and at what stands between: a proxy may allow too little time."
    )


def wrong_model(name: str, known: tuple[str, ...], request: EndpointRequest) -> str:
    """A model that a server does not list."""
    if len(known) > _NAMED:
        near = near_names(name, known)
        listed = f"the {len(known)} that it lists" + (f", for example {', '.join(near)}" if near else "")
    else:
        listed = ", ".join(known)
    return f"The model must be one that {request.host} serves: {listed}; got {name!r}. Choose one of them."


def no_model(known: tuple[str, ...] | None, request: EndpointRequest) -> str:
    """A server that has no list, lists none, or several."""
    if known is None:
        return (
            f"A model must be named, because {request.host} has no list of them at {request.base}/models. "
            "Name the one that it serves, or check the address: most end in /v1."
        )
    if not known:
        return f"A model must be named; {request.host} lists none. Name the one that it serves."
    several = ", ".join(known[:_NAMED]) + (" and others" if len(known) > _NAMED else "")
    return f"A model must be named, because {request.host} serves several: {several}. Name one of them."


def _certificate(problem: BaseException) -> str | None:
    """Why a certificate is not trusted; None where that is not what failed."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message or "it cannot be verified"
        cause = cause.__cause__ or cause.__context__
    return None


def _reason(problem: BaseException) -> str:
    """The system's word for a failed connection."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "the connection is refused"
        if isinstance(cause, OSError) and cause.strerror:
            return plain_text(cause.strerror.lower(), 80)
        cause = cause.__cause__ or cause.__context__
    return "no connection"
