"""The controls of many requests: four in sight, the others behind a button."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from core.analytic.batching_policy import POLICIES
from core.errors import UserError
from core.lab.serve_request import CACHES, ServeRequest
from core.lab.status import LabStatus
from core.simulate.trace import SPREADS
from core.ui import print_view
from core.ui.lab import models
from core.ui.lab.controls import FORMAT_NAMES
from core.ui.lab.link import KV, WEIGHTS
from core.ui.lab.many.settings import BESIDE, LIMITS, LINKED

_CACHES: Final = {"paged": "In pages", "contiguous": "In one piece"}
_SPREADS: Final = {"exponential": "drawn, most short", "fixed": "all alike"}


def draw() -> None:
    """Draw how many requests there are, who may join when, the cache, and what stands beside."""
    first, second, third, fourth = st.columns(4)
    with first:
        _number("Requests", "requests", "How many come. Their lengths are drawn from the seed.")
    with second:
        _choice(
            "Scheduler",
            "policy",
            tuple(POLICIES),
            {name: name.capitalize() for name in POLICIES},
            "Static: a full batch runs to its end. Dynamic: a batch also starts when its first request has "
            "waited for 8 steps. Continuous: requests join and leave at every step.",
        )
    with third:
        _choice("KV cache", "cache", CACHES, _CACHES, "In pages, or in one piece for each request's longest.")
    with fourth:
        words = {name: said.capitalize() for name, said in BESIDE.items()}
        _choice(
            "Compare with", "beside", tuple(BESIDE), words, "The same trace, served in another way as well."
        )


def more(status: LabStatus) -> None:
    """A button that unfolds all others."""
    fold = print_view.pop("More settings", key="serve_more", icon=":material/tune:")
    if not fold.open:
        return
    with fold.place:
        _trace()
        _memory()
        _model(status)


def problem(request: ServeRequest, status: LabStatus) -> str:
    """What is wrong with the settings, as a sentence; empty where nothing is."""
    if status.models and request.model not in status.models:
        return f"{models.short(request.model)} does not fit this computer. Choose another model."
    try:
        request.validate()
    except UserError as mistake:
        return str(mistake)
    return ""


def _trace() -> None:
    st.markdown("**The trace**")
    left, right = st.columns(2)
    with left:
        _number("Prompt tokens", "prompt_tokens", "The mean of the prompts.")
        _number("Steps between arrivals", "spacing", "The mean; 0 for all at once.")
        _choice("Spread", "spread", SPREADS, _SPREADS, "Of lengths and arrivals.")
    with right:
        _number("Answer tokens", "answer_tokens", "The mean of the answers.")
        _number("Shared tokens", "shared_tokens", "Tokens that begin every prompt, before its own.")
        _number("Seed", "seed", "The same seed gives the same trace.")


def _memory() -> None:
    st.markdown("**Memory and steps**")
    left, right = st.columns(2)
    with left:
        _number("Places", "places", "The most requests at once.")
        _number("Tokens of a page", "page_tokens", "Of the cache in pages.")
        _number("Guesses", "guesses", "Tokens guessed from the text and checked in a step; 0 for none.")
    with right:
        _number("Slots of the cache", "cache_tokens", "0 for room for the longest request in every place.")
        _number("Tokens of a step", "step_tokens", "The most. Fewer read a long prompt in pieces.")
        st.checkbox(
            "Share pages",
            help="A page whose tokens begin several requests is kept once.",
            **_of("share"),
        )


def _model(status: LabStatus) -> None:
    st.markdown("**The model**")
    chosen = LINKED.current().model
    offered = tuple(dict.fromkeys((*status.models, chosen)))
    _choice("Model", "model", offered, {name: models.label(name) for name in offered}, "What writes.")
    left, right = st.columns(2)
    with left:
        _choice(
            "Weight format",
            "weights",
            WEIGHTS,
            FORMAT_NAMES,
            "In fp32, outputs are equal to the token. In fewer bits a batch may round otherwise than one "
            "alone.",
        )
    with right:
        _choice("KV format", "kv", KV, FORMAT_NAMES, "How keys and values are stored.")


def _choice(label: str, name: str, options: Sequence[str], words: Mapping[str, str], help: str) -> None:
    st.selectbox(label, options, format_func=lambda option: words.get(option, option), help=help, **_of(name))


def _number(label: str, name: str, help: str) -> None:
    low, high = LIMITS[name]
    st.number_input(label, int(low), int(high), step=1, help=help, **_of(name))


def _of(name: str) -> dict[str, Any]:
    """What every widget has: its key, and that a change goes into the record and the link."""
    return {"key": LINKED.widget_key(name), "on_change": LINKED.changed}
