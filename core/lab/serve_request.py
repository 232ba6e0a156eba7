"""A trace to be served by the engine, in one or more ways, and the limits of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from core.analytic.batching_policy import POLICIES
from core.analytic.step_record import PREFILL_TOKENS
from core.catalog.formats import engine_format
from core.errors import RequestError
from core.lab.request import EMBEDDED_MODEL
from core.lab.typed_json import plain, typed
from core.simulate.batching import Arrival, Batching, SimulatedStep, simulate
from core.simulate.trace import Trace

PagedCache = Literal["paged", "contiguous"]
CACHES: Final[tuple[PagedCache, ...]] = ("paged", "contiguous")
MAX_WAYS: Final = 4
MAX_PLACES: Final = 64
MAX_PAGE_TOKENS: Final = 512
#: Slots of the cache; a slot of the embedded model has 45 kB in fp32.
MAX_CACHE_TOKENS: Final = 16_384
#: Steps and tokens of all ways together: what a job's time allows on a slow machine.
MAX_STEPS: Final = 1_500
MAX_TOKENS: Final = 24_000
_WHAT: Final = "A trace to serve"


@dataclass(frozen=True, slots=True)
class Way:
    """How a trace is served.

    Attributes:
        policy: who may join when. cache: how it is laid out. step_tokens: the most tokens of a step.
        places: the most requests at once; 0 for as many as the request has. With 1, one by one.
        guessing: whether the request's guesses are used.
    """

    policy: str = "continuous"
    cache: PagedCache = "paged"
    step_tokens: int = PREFILL_TOKENS
    places: int = 0
    guessing: bool = True

    def to_json(self) -> dict[str, Any]:
        """A plain dict; places of its own and doing without guesses only where that is so."""
        usual = {"places": 0, "guessing": True}
        return {name: value for name, value in plain(self).items() if usual.get(name) != value}


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """One trace, served in each way, one after the other.

    Attributes:
        model, weights, kv: the model and its number formats; fp32 is exact, so that outputs can be
            compared token for token.
        trace: the requests. ways: how they are served.
        places: the most requests at once. page_tokens: tokens of a page of the paged cache.
        cache_tokens: slots of the cache; 0 for room for the longest request in every place.
        share: look for pages that already hold the beginning of a request.
        guesses: tokens that are guessed from the text so far and verified in each step; 0 for none.
    """

    model: str = EMBEDDED_MODEL
    weights: str = "fp32"
    kv: str = "fp32"
    trace: Trace = field(default_factory=Trace)
    ways: tuple[Way, ...] = (Way(),)
    places: int = 4
    page_tokens: int = 16
    cache_tokens: int = 0
    share: bool = True
    guesses: int = 0

    def validate(self) -> None:
        """Check every limit, and that the trace can be served so at all.

        Raises:
            RequestError, FormatError: the first limit that does not hold, as a sentence.
        """
        engine_format(self.weights, "weights")
        engine_format(self.kv, "kv")
        self.trace.validate()
        _within("places", self.places, 1, MAX_PLACES)
        _within("page_tokens", self.page_tokens, 1, MAX_PAGE_TOKENS)
        _within("cache_tokens", self.cache_tokens, 0, MAX_CACHE_TOKENS)
        _within("guesses", self.guesses, 0, 16)
        if not 1 <= len(self.ways) <= MAX_WAYS:
            raise RequestError(f"A trace is served in 1 to {MAX_WAYS} ways; got {len(self.ways)}. Name some.")
        for way in self.ways:
            _one_of("policy", way.policy, tuple(POLICIES))
            _one_of("cache", way.cache, CACHES)
            _within("step_tokens", way.step_tokens, 1, PREFILL_TOKENS)
            _within("places", way.places, 0, MAX_PLACES)
        self._check_memory()
        self._check_work()

    def arrivals(self) -> list[Arrival]:
        """The requests of the trace."""
        return self.trace.arrivals()

    @property
    def longest(self) -> int:
        """Tokens to which the longest request grows."""
        return max(arrival.prompt_tokens + arrival.new_tokens for arrival in self.arrivals())

    def places_of(self, way: Way) -> int:
        """The most requests at once when they are served this way."""
        return way.places or self.places

    def guesses_of(self, way: Way) -> int:
        """Tokens that are guessed in each step when they are served this way."""
        return self.guesses if way.guessing else 0

    def batching(self, way: Way) -> Batching:
        """The same for the simulator; a contiguous cache is one page for the longest request a place."""
        page_tokens = self.page_tokens if way.cache == "paged" else self.longest
        each = -(-self.longest // page_tokens)
        return Batching(
            num_pages=self.cache_tokens // page_tokens if self.cache_tokens else self.places * each,
            page_tokens=page_tokens,
            policy=POLICIES[way.policy],
            max_sequences=self.places_of(way),
            step_tokens=way.step_tokens,
            share=self.share,
        )

    def simulated(self, way: Way) -> list[SimulatedStep]:
        """The steps that serving takes this way, without guesses.

        Raises:
            RequestError: a request does not fit the cache by itself.
        """
        return simulate(self.arrivals(), self.batching(way))

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return {
            **plain(self),
            "trace": plain(self.trace),
            "ways": [way.to_json() for way in self.ways],
        }

    @classmethod
    def from_json(cls, data: object) -> ServeRequest:
        """Read a request back and validate it.

        Raises:
            RequestError, FormatError: it is not an object, or a value does not hold.
        """
        if not isinstance(data, dict):
            raise RequestError(f"{_WHAT} must be an object; got {type(data).__name__}.")
        ways = data.get("ways", [{}])
        if not isinstance(ways, list):
            raise RequestError(f"{_WHAT} must have a list of ways; got {type(ways).__name__}.")
        own = {name: value for name, value in data.items() if name not in {"trace", "ways"}}
        flat = typed(_Flat, own, _WHAT)
        request = cls(
            **plain(flat),
            trace=typed(Trace, data.get("trace", {}), "A trace"),
            ways=tuple(typed(Way, way, "A way of serving") for way in ways),
        )
        request.validate()
        return request

    def _check_memory(self) -> None:
        slots = self.cache_tokens or self.places * self.longest
        if slots > MAX_CACHE_TOKENS:
            raise RequestError(
                f"The cache may have up to {MAX_CACHE_TOKENS:,} slots; {self.places} places for requests of "
                f"up to {self.longest:,} tokens need {slots:,}. Choose fewer places or shorter requests."
            )
        for way in self.ways:
            batching = self.batching(way)
            if batching.num_pages * batching.page_tokens < self.longest:
                raise RequestError(
                    f"A request must fit the cache of {slots:,} tokens by itself; one may grow to "
                    f"{self.longest:,}. Ask for shorter ones, or give the cache more."
                )

    def _check_work(self) -> None:
        arrivals, ways = self.arrivals(), len(self.ways)
        tokens = ways * sum(arrival.prompt_tokens + arrival.new_tokens for arrival in arrivals)
        if tokens > MAX_TOKENS:
            raise RequestError(
                f"Serving a trace may take up to {MAX_TOKENS:,} tokens, all ways together; this takes "
                f"{tokens:,}. Ask for fewer or shorter requests."
            )
        most = MAX_STEPS + 1
        if sum(len(simulate(arrivals, self.batching(way), most)) for way in self.ways) >= most:
            raise RequestError(
                f"Serving a trace may take up to {MAX_STEPS:,} steps, all ways together; this takes more. "
                "Ask for fewer or shorter requests, or for more places or tokens a step."
            )


@dataclass(frozen=True, slots=True)
class _Flat:
    """The fields of a request that are no records of their own."""

    model: str = EMBEDDED_MODEL
    weights: str = "fp32"
    kv: str = "fp32"
    places: int = 4
    page_tokens: int = 16
    cache_tokens: int = 0
    share: bool = True
    guesses: int = 0


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:,} to {high:,}; got {value:,}. Choose one in between.")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RequestError(f"The {name} must be one of {', '.join(choices)}; got {value[:40]!r}.")
