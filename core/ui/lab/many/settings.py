"""What a visitor asks for: a trace, how it is served, and what stands beside it; in session and link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from core.analytic.batching_policy import POLICIES
from core.analytic.step_record import PREFILL_TOKENS
from core.lab.experiment import Experiment
from core.lab.request import EMBEDDED_MODEL
from core.lab.serve_request import (
    CACHES,
    MAX_CACHE_TOKENS,
    MAX_PAGE_TOKENS,
    MAX_PLACES,
    PagedCache,
    ServeRequest,
    Way,
)
from core.simulate.trace import (
    MAX_LENGTH,
    MAX_REQUESTS,
    MAX_SEED,
    MAX_SPACING,
    SPREADS,
    Spread,
    Trace,
)
from core.ui.lab import link_fields, models
from core.ui.lab.link import KV, WEIGHTS
from core.ui.lab.link_fields import SWITCH, LinkField
from core.ui.lab.linked import Linked

PREFIX: Final = "serve_"
KIND: Final = "serve-trace"
#: The record that was loaded from a file and is shown now.
LOADED: Final = "lab_many_loaded"
#: What the trace is served in besides, and what it is called.
BESIDE: Final[dict[str, str]] = {
    "single": "one by one",
    "cache": "the other cache",
    "static": "static batching",
    "none": "nothing",
}


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """Every control of the part; see ``Trace``, ``Way`` and ``ServeRequest`` for what they mean.

    ``beside`` is one of ``BESIDE``.
    """

    model: str = EMBEDDED_MODEL
    weights: str = "fp32"
    kv: str = "fp32"
    requests: int = 8
    prompt_tokens: int = 24
    answer_tokens: int = 16
    spread: Spread = "exponential"
    spacing: int = 2
    shared_tokens: int = 0
    seed: int = 0
    policy: str = "continuous"
    cache: PagedCache = "paged"
    beside: str = "single"
    places: int = 4
    page_tokens: int = 16
    cache_tokens: int = 0
    step_tokens: int = PREFILL_TOKENS
    share: bool = True
    guesses: int = 0

    def request(self) -> ServeRequest:
        """The same for the lab; not validated.

        >>> [way_name(way) for way in TraceSettings(beside="cache").request().ways]
        ['continuous, in pages', 'continuous, in one piece']
        """
        first = Way(self.policy, self.cache, self.step_tokens)
        second = self._beside(first)
        return ServeRequest(
            model=self.model,
            weights=self.weights,
            kv=self.kv,
            trace=Trace(
                requests=self.requests,
                prompt_tokens=self.prompt_tokens,
                answer_tokens=self.answer_tokens,
                spread=self.spread,
                spacing=self.spacing,
                shared_tokens=self.shared_tokens,
                seed=self.seed,
            ),
            ways=(first,) if second in {None, first} else (first, second),
            places=self.places,
            page_tokens=self.page_tokens,
            cache_tokens=self.cache_tokens,
            share=self.share,
            guesses=self.guesses,
        )

    def _beside(self, first: Way) -> Way | None:
        if self.beside == "single":
            return replace(first, policy="continuous", places=1, guessing=not self.guesses)
        if self.beside == "cache":
            return replace(first, cache="contiguous" if first.cache == "paged" else "paged")
        return replace(first, policy="static") if self.beside == "static" else None


def settings_of(request: ServeRequest) -> TraceSettings:
    """The controls that ask for a request, as far as they can."""
    first, *others = request.ways
    found = TraceSettings(
        model=request.model,
        weights=request.weights,
        kv=request.kv,
        requests=request.trace.requests,
        prompt_tokens=request.trace.prompt_tokens,
        answer_tokens=request.trace.answer_tokens,
        spread=request.trace.spread,
        spacing=request.trace.spacing,
        shared_tokens=request.trace.shared_tokens,
        seed=request.trace.seed,
        policy=first.policy,
        cache=first.cache,
        places=request.places,
        page_tokens=request.page_tokens,
        cache_tokens=request.cache_tokens,
        step_tokens=first.step_tokens,
        share=request.share,
        guesses=request.guesses,
    )
    every = (replace(found, beside=name) for name in BESIDE)
    return next((one for one in every if one.request().ways[1:] == tuple(others)), found)


def way_name(way: Way) -> str:
    """A way of serving in a few words."""
    cache = "in pages" if way.cache == "paged" else "in one piece"
    if way.places == 1:
        return f"one by one, {cache}"
    chunked = "" if way.step_tokens == PREFILL_TOKENS else f", up to {way.step_tokens:,} tokens a step"
    return f"{way.policy}, {cache}{chunked}"


def experiment_of(request: ServeRequest) -> Experiment:
    """The request as a job of the lab."""
    return Experiment(KIND, request.to_json(), f"a trace of {request.trace.requests} requests")


_FIELDS: Final[dict[str, LinkField]] = {
    "model": LinkField("model", "model", models.known_ids()),
    "weights": LinkField("weights", "weight format", WEIGHTS),
    "kv": LinkField("kv", "KV format", KV),
    "requests": LinkField("requests", "Requests", limits=(1, MAX_REQUESTS)),
    "prompt_tokens": LinkField("prompt", "Prompt tokens", limits=(1, MAX_LENGTH)),
    "answer_tokens": LinkField("answer", "Answer tokens", limits=(1, MAX_LENGTH)),
    "spread": LinkField("spread", "spread", SPREADS),
    "spacing": LinkField("spacing", "Steps between arrivals", limits=(0, MAX_SPACING)),
    "shared_tokens": LinkField("shared", "Shared tokens", limits=(0, MAX_LENGTH)),
    "seed": LinkField("seed", "The seed", limits=(0, MAX_SEED)),
    "policy": LinkField("policy", "policy", tuple(POLICIES)),
    "cache": LinkField("cache", "cache", CACHES),
    "beside": LinkField("beside", "way beside", tuple(BESIDE)),
    "places": LinkField("places", "Places", limits=(1, MAX_PLACES)),
    "page_tokens": LinkField("page", "Tokens of a page", limits=(1, MAX_PAGE_TOKENS)),
    "cache_tokens": LinkField("slots", "Slots of the cache", limits=(0, MAX_CACHE_TOKENS)),
    "step_tokens": LinkField("step", "Tokens of a step", limits=(1, PREFILL_TOKENS)),
    "share": LinkField("share", "sharing switch", SWITCH),
    "guesses": LinkField("guesses", "Guesses", limits=(0, 16)),
}
LIMITS: Final = {name: field.limits for name, field in _FIELDS.items() if field.limits is not None}


def _encode(settings: TraceSettings) -> dict[str, str]:
    return link_fields.encode(settings, TraceSettings(), _FIELDS, PREFIX)


def _decode(params: Mapping[str, str], _: TraceSettings) -> tuple[TraceSettings, tuple[str, ...]]:
    return link_fields.decode(params, TraceSettings(), _FIELDS, PREFIX)


def _close_loaded() -> None:
    """A loaded record is not what the controls say any more."""
    st.session_state.pop(LOADED, None)


LINKED: Final = Linked(PREFIX, TraceSettings(), _encode, _decode, _close_loaded)
