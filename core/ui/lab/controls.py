"""The lab's controls: the prompt, what runs it, and the settings that few visitors need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from core.catalog.formats import FORMATS
from core.errors import UserError
from core.lab.request import CACHES, EMBEDDED_MODEL, MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS, RunRequest
from core.lab.status import LabStatus
from core.ui.lab import models, settings
from core.ui.lab.link import KV, LIMITS, WEIGHTS

_CACHES: Final = {"contiguous": "On, in one piece", "paged": "On, in pages", "none": "Off"}
_DEVICES: Final = {"cpu": "CPU", "cuda": "GPU (CUDA)"}
#: Short enough for half a column; the sizes of groups are told where a format is explained.
FORMAT_NAMES: Final = {record.id: record.name.partition(",")[0] for record in FORMATS.values()}


def draw(status: LabStatus) -> None:
    """Draw the prompt and the four main controls."""
    st.text_area(
        "Prompt",
        key=settings.widget_key("prompt"),
        height=90,
        max_chars=MAX_PROMPT_CHARACTERS,
        help="Sent to this server's own worker and to nobody else. It is not logged and not put into links.",
        on_change=settings.changed,
    )
    left, right = st.columns(2)
    with left:
        _model(status)
        _choice(
            "Weight format",
            "weights",
            WEIGHTS,
            FORMAT_NAMES,
            "How each weight is stored. Fewer bits mean fewer bytes to read for every token.",
        )
    with right:
        st.slider(
            "New tokens, at most",
            1,
            MAX_NEW_TOKENS,
            key=settings.widget_key("max_tokens"),
            help="A token is a piece of a word. The answer ends after so many, or earlier by itself.",
            on_change=settings.changed,
        )
        _choice(
            "KV cache",
            "cache",
            CACHES,
            _CACHES,
            "On: the keys and values of earlier tokens are kept, in one piece of memory or in pages of a few "
            "tokens. Off: all are computed anew for each token.",
        )


def more(status: LabStatus) -> None:
    """A button that unfolds the settings few visitors need."""
    fold = st.popover("Settings", icon=":material/tune:", key="lab_more", on_change="rerun")
    if not fold.open:
        return
    with fold:
        devices = status.info.devices or ("cpu",)
        if len(devices) > 1:
            _choice("Device", "device", devices, _DEVICES, "Where it runs.")
        _choice("KV format", "kv", KV, FORMAT_NAMES, "How keys and values are stored.")
        left, right = st.columns(2)
        with left:
            _number("Temperature", "temperature", 0.1, "0 always takes the likeliest token.")
            _number(
                "Top-p", "top_p", 0.05, "Choose among the likeliest tokens that reach this share; 1 is off."
            )
        with right:
            _number("Top-k", "top_k", 1, "Choose among so many likeliest tokens; 0 is off.")
            _number("Seed", "seed", 1, "The same seed gives the same answer.")
        st.checkbox(
            "Raw prompt",
            key=settings.widget_key("raw"),
            help="Without the chat template that marks your text as a question.",
            on_change=settings.changed,
        )


def problem(request: RunRequest, status: LabStatus) -> str:
    """What is wrong with the settings, as a sentence; empty where nothing is."""
    if request.model == EMBEDDED_MODEL and status.info.model_message:
        return status.info.model_message
    if status.models and request.model not in status.models:
        return f"{models.short(request.model)} does not fit this computer. Choose another model."
    try:
        request.validate()
    except UserError as mistake:
        return str(mistake)
    return ""


def _model(status: LabStatus) -> None:
    chosen = settings.current().model
    offered = status.models or (chosen,)
    _choice(
        "Model",
        "model",
        offered if chosen in offered else (*offered, chosen),
        {name: models.label(name) for name in (*offered, chosen)},
        "SmolLM2 has real weights. A shape has the size and speed of its model but random weights, so it "
        "writes noise.",
    )


def _choice(label: str, name: str, options: Sequence[str], words: Mapping[str, str], help: str) -> None:
    st.selectbox(
        label,
        options,
        key=settings.widget_key(name),
        format_func=lambda option: words.get(option, option),
        help=help,
        on_change=settings.changed,
    )


def _number(label: str, name: str, step: float, help: str) -> None:
    low, high = LIMITS[name]
    kind = type(getattr(settings.current(), name))
    st.number_input(
        label,
        kind(low),
        kind(high),
        step=kind(step),
        key=settings.widget_key(name),
        help=help,
        on_change=settings.changed,
    )
