"""What to ask of a server, how often and at which concurrency, and the limits of it.

The key is not part of a request: it is handed to the client alone, so that nothing that is written,
shown or logged can hold it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

import httpx2

from core.catalog.plain_text import plain_text
from core.errors import RequestError
from core.lab.typed_json import plain, typed

Api = Literal["completions", "chat"]
APIS: Final[tuple[Api, ...]] = ("completions", "chat")
MAX_LEVELS: Final = 6
MAX_SEED: Final = 2**31 - 1
#: Tokens of all answers together; a record keeps the time of each.
MAX_ANSWER_TOKENS: Final = 100_000
_LONGEST_URL: Final = 2_000
_LONGEST_MODEL: Final = 300
_LONGEST_KEY: Final = 4_096
#: What a pasted address may end in beyond its base.
_ENDINGS: Final = ("/chat/completions", "/completions", "/models")
_PORTS: Final = {"http": 80, "https": 443}
#: Field -> smallest, largest, and its name in sentences.
LIMITS: Final[dict[str, tuple[float, float, str]]] = {
    "requests": (1, 512, "number of requests"),
    "prompt_tokens": (1, 32_768, "number of prompt tokens"),
    "output_tokens": (1, 4_096, "number of output tokens"),
    "seed": (0, MAX_SEED, "seed"),
    "connect_s": (0.05, 60, "time to connect, in seconds,"),
    "silence_s": (0.05, 600, "longest silence, in seconds,"),
    "request_s": (0.05, 3600, "time of a request, in seconds,"),
    "run_s": (0.05, 7200, "time of the whole run, in seconds,"),
}
CONCURRENCY: Final = (1, 256)


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """One measurement of one server.

    Attributes:
        url: the base, for example ``http://localhost:8000/v1``. model: as the server names it; empty for
            the only one it serves. api: which of its two interfaces is asked.
        levels: requests at once, one level after another. requests: of each level.
        prompt_tokens, output_tokens: of a request. seed: of the prompts; answers are greedy.
        full_length: ask for answers that do not end early (``ignore_eos``, which not every server knows).
        connect_s, silence_s: how long a server may take to accept, and to send nothing.
        request_s, run_s: how long one request, and all of them, may take.
    """

    url: str = "http://localhost:8000/v1"
    model: str = ""
    api: str = "completions"
    levels: tuple[int, ...] = (1,)
    requests: int = 8
    prompt_tokens: int = 256
    output_tokens: int = 64
    seed: int = 0
    full_length: bool = True
    connect_s: float = 10.0
    silence_s: float = 60.0
    request_s: float = 120.0
    run_s: float = 600.0

    def validate(self) -> None:
        """Check every limit that can be checked without the server.

        Raises:
            RequestError: the first limit that does not hold, as a sentence.
        """
        _checked_url(self.url)
        if self.api not in APIS:
            raise RequestError(f"The interface must be one of {', '.join(APIS)}; got {self.api[:40]!r}.")
        if self.model != plain_text(self.model, _LONGEST_MODEL):
            raise RequestError(
                f"The model must be a name of up to {_LONGEST_MODEL} visible characters; this one is not. "
                "Copy it from the server's list of models."
            )
        for name, (low, high, words) in LIMITS.items():
            value = getattr(self, name)
            if not low <= value <= high:  # also false for a NaN
                raise RequestError(f"The {words} must be from {low:,} to {high:,}; got {value:,}.")
        self._check_levels()

    def _check_levels(self) -> None:
        low, high = CONCURRENCY
        if not 1 <= len(self.levels) <= MAX_LEVELS or len(set(self.levels)) != len(self.levels):
            raise RequestError(
                f"The concurrency must be 1 to {MAX_LEVELS} different numbers; got "
                f"{', '.join(map(str, self.levels[:20])) or 'none'}."
            )
        for level in self.levels:
            if not low <= level <= high:
                raise RequestError(f"The concurrency must be from {low} to {high}; got {level:,}.")
        if self.requests < max(self.levels):
            raise RequestError(
                f"There must be as many requests as are made at once, {max(self.levels)}; got "
                f"{self.requests}. Ask for more requests, or fewer at once."
            )
        tokens = len(self.levels) * self.requests * self.output_tokens
        if tokens > MAX_ANSWER_TOKENS:
            raise RequestError(
                f"All answers together may have up to {MAX_ANSWER_TOKENS:,} tokens; these would have "
                f"{tokens:,}. Ask for fewer requests, levels or tokens."
            )

    @property
    def base(self) -> str:
        """The address that paths are added to; ``/v1`` where only a host is given.

        >>> EndpointRequest("http://localhost:8000").base
        'http://localhost:8000/v1'
        >>> EndpointRequest("https://example.org/openai/v1/chat/completions/").base
        'https://example.org/openai/v1'
        """
        parts = _checked_url(self.url)
        path = parts.path.rstrip("/")
        for ending in _ENDINGS:
            path = path.removesuffix(ending)
        return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"

    @property
    def origin(self) -> str:
        """Scheme, host and port, which is all that a record keeps of the address."""
        parts = _checked_url(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def host(self) -> str:
        """Host and port, as sentences name the server."""
        return _checked_url(self.url).netloc

    @property
    def is_here(self) -> bool:
        """Whether the server is on this computer.

        >>> [EndpointRequest(f"http://{host}").is_here for host in ("127.0.0.1:1", "[::1]", "10.0.0.1")]
        [True, True, False]
        """
        name = _checked_url(self.url).hostname or ""
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:  # a name and no number
            return name == "localhost"

    def public(self) -> EndpointRequest:
        """The same with nothing of the address but its origin."""
        return replace(self, url=self.origin)

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a file, without the address's path."""
        return plain(self.public())

    @classmethod
    def from_json(cls, data: object) -> EndpointRequest:
        """Read a request back and validate it.

        Raises:
            RequestError: it is not an object, or a value does not hold.
        """
        request = typed(cls, data, "A measurement of a server")
        request.validate()
        return request


def check_key(key: str) -> None:
    """Check that a key can stand in a header; what came is not repeated.

    Raises:
        RequestError: it has characters that no key has, or too many.
    """
    if len(key) > _LONGEST_KEY or not all("!" <= letter <= "~" for letter in key):
        raise RequestError(
            f"A key must have up to {_LONGEST_KEY:,} visible ASCII characters and no spaces; this one is "
            "different. Copy it again."
        )


def _checked_url(url: str) -> SplitResult:
    """The parts of an address.

    Raises:
        RequestError: it is none that can be called; a password or a query in it is not repeated.
    """
    if len(url) > _LONGEST_URL or url != plain_text(url, _LONGEST_URL) or " " in url or "\\" in url:
        raise RequestError(
            f"The address must be one line of up to {_LONGEST_URL:,} characters without spaces; this one "
            "is not. Give one like http://localhost:8000/v1."
        )
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        httpx2.URL(url)  # refuses hosts that no address has
    except (ValueError, httpx2.InvalidURL):
        raise RequestError(
            "The address must have a valid host, and a port from 1 to 65,535; this one does not. Give one "
            "like http://localhost:8000/v1."
        ) from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise RequestError(
            "The address must hold no user name, password, key or query; this one does. Give a key by "
            "itself and not in the address."
        )
    if parts.scheme not in _PORTS or not parts.hostname or not port:
        raise RequestError(
            f"The address must begin with http:// or https:// and name a host; got {url[:80]!r}. Give one "
            "like http://localhost:8000/v1."
        )
    return parts
