"""One card that says where things stand; each state looks different, by sign, word and edge."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final, Literal

import streamlit as st

State = Literal[
    "nothing",
    "starting",
    "queued",
    "measuring",
    "measured",
    "noisy",
    "ended",
    "failed",
    "elsewhere",
    "recorded",
]


@dataclass(frozen=True, slots=True)
class _Look:
    word: str
    sign: str
    colour: str
    edge: str


#: Each colour has a contrast of at least 3 to 1 on the light and on the dark page.
LOOKS: Final[dict[State, _Look]] = {
    "nothing": _Look("Nothing measured yet", "○", "#7b828d", "dashed"),
    "starting": _Look("Getting ready", "◔", "#7b828d", "dotted"),
    "queued": _Look("Waiting", "◷", "#4a7fd6", "dotted"),
    "measuring": _Look("Measuring", "▶", "#4a7fd6", "solid"),
    "measured": _Look("Measured here", "✔", "#1f9467", "solid"),
    "noisy": _Look("Measured here, but noisy", "≈", "#b97510", "double"),
    "ended": _Look("Ended early", "■", "#b97510", "dotted"),
    "failed": _Look("No result", "✕", "#d4483f", "solid"),
    "elsewhere": _Look("Loaded from a file", "⇪", "#8f6bd0", "double"),
    "recorded": _Look("Recorded on another machine", "⌂", "#8f6bd0", "dashed"),
}


def state_card(state: State, sentence: str, fraction: float | None = None) -> None:
    """Show a state with one sentence, and how far it has come where that is known.

    The card keeps its height from state to state, so that nothing below it jumps.
    """
    look = LOOKS[state]
    percent = 0.0 if fraction is None else 100 * min(max(fraction, 0.0), 1.0)
    bar = "hidden" if fraction is None else "visible"
    st.html(
        f'<div role="status" data-state="{state}" style="border:1px solid {look.colour};'
        f"border-left:6px {look.edge} {look.colour};border-radius:6px;padding:.5rem .8rem .45rem;"
        f'min-height:4.6rem;background:color-mix(in srgb,{look.colour} 9%,transparent)">'
        f'<strong><span aria-hidden="true">{look.sign}</span> {escape(look.word)}</strong>'
        f'<div style="overflow-wrap:anywhere">{escape(sentence)}</div>'
        f'<div aria-hidden="true" style="visibility:{bar};margin-top:.3rem;height:4px;border-radius:2px;'
        f'background:color-mix(in srgb,{look.colour} 25%,transparent)">'
        f'<div style="height:4px;border-radius:2px;width:{percent:.0f}%;background:{look.colour}">'
        "</div></div>"
        "</div>"
    )
