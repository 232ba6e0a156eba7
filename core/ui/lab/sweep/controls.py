"""The controls of a sweep: four in sight, the others behind a button."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from core.errors import UserError
from core.lab.request import CACHES
from core.lab.status import LabStatus
from core.lab.sweep_request import (
    MOST_BATCH,
    MOST_CELLS,
    MOST_NEW_TOKENS,
    MOST_PROMPT_TOKENS,
    MOST_REPEATS,
    MOST_SEED,
    SweepRequest,
)
from core.ui import print_view
from core.ui.lab import models
from core.ui.lab.controls import FORMAT_NAMES
from core.ui.lab.link import KV, WEIGHTS
from core.ui.lab.sweep import settings
from core.units import format_count, format_seconds

_CACHES: Final = {"contiguous": "In one piece", "paged": "In pages", "none": "Off"}
_BATCHES: Final = (1, 2, 4, 8, 16)
_PROMPTS: Final = (16, 32, 64, 128, 256, 512, 1024)


def draw(*, locked: bool) -> None:
    """Draw what is swept most; it waits while the sweep that it sets is under way."""
    first, second = st.columns(2)
    with first:
        _several("Weight formats", "weights", WEIGHTS, FORMAT_NAMES.__getitem__, locked)
        _several("Requests at once", "batches", _offered(_BATCHES, "batches"), str, locked)
    with second:
        _several("KV formats", "kv", KV, FORMAT_NAMES.__getitem__, locked)
        _several(
            "Prompt tokens", "prompts", _offered(_PROMPTS, "prompts"), lambda tokens: f"{tokens:,}", locked
        )


def more(status: LabStatus, *, locked: bool) -> None:
    """A button that unfolds the others."""
    fold = print_view.pop("More settings", key="sweep_more", icon=":material/tune:")
    if not fold.open:
        return
    with fold.place:
        known = status.models or models.known_ids()[:1]
        others = [model for model in settings.current().models if model not in known]
        _several("Models", "models", [*known, *others], models.label, locked)
        _several("KV cache", "caches", CACHES, _CACHES.__getitem__, locked)
        left, right = st.columns(2)
        with left:
            _number("New tokens", "new_tokens", 2, MOST_NEW_TOKENS, "Of each request.", locked=locked)
            _number(
                "Repeats", "repeats", 1, MOST_REPEATS, "How often each cell is run, at least.", locked=locked
            )
            _number(
                "Tries",
                "tries",
                1,
                MOST_REPEATS,
                "A noisy cell is run again, so often at most.",
                locked=locked,
            )
        with right:
            _number(
                "Cells, at most",
                "most",
                0,
                MOST_CELLS,
                "A seeded choice of all; 0 takes all of them.",
                locked=locked,
            )
            _number("Seed", "seed", 0, MOST_SEED, "Of that choice, and of the prompts.", locked=locked)
        st.checkbox(
            "Judge the formats too",
            key=settings.widget_key("quality"),
            help="Divergence from fp32, top-1 agreement and perplexity on a chapter of a book, for the model "
            "with real weights. Takes some seconds for each pair of formats.",
            on_change=settings.changed,
            args=("quality",),
            disabled=locked,
        )


def problem(request: SweepRequest, status: LabStatus) -> str:
    """What is wrong with the settings, as a sentence; empty where nothing is."""
    try:
        request.validate()
    except UserError as mistake:
        return str(mistake)
    missing = [model for model in request.models if status.models and model not in status.models]
    if missing:
        return f"{models.short(missing[0])} does not fit this computer. Choose another model."
    return ""


def length(request: SweepRequest, expected_s: float | None) -> str:
    """How many cells there are, and about how long they take."""
    cells = format_count(len(request.cells()), "cell")
    if expected_s is None:
        return f"{cells}. How long they take is not known yet."
    return f"{cells}, about {format_seconds(max(expected_s, 1.0))} by the predictions, and loading besides."


def _offered(usual: Sequence[int], name: str) -> list[int]:
    """The usual values, and those that are set."""
    return sorted({*usual, *getattr(settings.current(), name)})


def _several(
    label: str, name: str, options: Sequence[object], words: Callable[..., str], locked: bool
) -> None:
    numbers = all(isinstance(option, int) for option in options)
    st.multiselect(
        label,
        options,
        key=settings.widget_key(name),
        format_func=words,
        on_change=settings.changed,
        args=(name,),
        disabled=locked,
        placeholder="Choose one or more",
        help=_HELP[name] + (_RANGES[name] if numbers else ""),
    )


_HELP: Final = {
    "weights": "How each weight is stored.",
    "kv": "How keys and values are stored.",
    "batches": "Equal requests that arrive together and share every step.",
    "prompts": "Random tokens: what they say does not change the time.",
    "models": "A shape has the size and speed of its model, and random weights.",
    "caches": "In one piece for each request, in pages of 16 tokens, or computed anew in each step.",
}
_RANGES: Final = {
    "batches": f" From 1 to {MOST_BATCH}.",
    "prompts": f" Up to {MOST_PROMPT_TOKENS:,}; the prompts of several requests together up to 2,048.",
}


def _number(label: str, name: str, low: int, high: int, help: str, *, locked: bool) -> None:
    st.number_input(
        label,
        low,
        high,
        step=1,
        key=settings.widget_key(name),
        help=help,
        on_change=settings.changed,
        args=(name,),
        disabled=locked,
    )
