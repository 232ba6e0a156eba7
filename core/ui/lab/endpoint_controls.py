"""What a visitor sets to measure a server: the address, the load, and what runs behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerators
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.models import catalogue, model
from core.lab.endpoint.prediction import Deployment, EndpointPrediction, predict
from core.lab.endpoint.request import APIS, EndpointRequest
from core.ui import print_view
from core.ui.scenario import words

_KEY: Final = "endpoint_key"
_TURN: Final = "endpoint_key_turn"
_LEVELS: Final = (1, 2, 4, 8, 16, 32)
#: Field, words, default, least and most on the page; the command line takes more.
_NUMBERS: Final = (
    ("requests", "Requests a level", 16, 1, 64),
    ("prompt_tokens", "Prompt tokens", 256, 1, 8192),
    ("output_tokens", "Output tokens", 64, 1, 512),
    ("seed", "Seed", 0, 0, 2**31 - 1),
)
#: Seconds that a run from the page may take.
RUN_S: Final = 120.0
_REQUEST_S: Final = 60.0
_SILENCE_S: Final = 30.0
_DEGREES: Final = {"count": "Chips", "tp": "Tensor parallel"}
_WEIGHTS: Final = tuple(entry.id for entry in STORAGE_FORMATS.values() if "weights" in entry.uses)
_CACHES: Final = tuple(entry.id for entry in STORAGE_FORMATS.values() if "kv" in entry.uses)


def draw(*, locked: bool) -> None:
    """Draw the controls: server, load, and what runs behind it; during a measurement they wait."""
    left, right = st.columns(2, gap="medium")
    with left:
        _field("url", "Address of the server", EndpointRequest().url, locked)
        name, key = st.columns(2)
        with name:
            _field("model", "Model", "", locked, placeholder="the only one it serves")
        with key:
            _key_field(locked)
        st.pills(
            "Requests at once, one level after another",
            _LEVELS,
            selection_mode="multi",
            default=[1, 4],
            key="endpoint_levels",
            disabled=locked,
            persist_state="session",
        )
    with right:
        for column, (field, label, default, low, high) in zip(
            [*st.columns(2), *st.columns(2)], _NUMBERS, strict=True
        ):
            with column:
                st.number_input(
                    label,
                    low,
                    high,
                    default,
                    key=f"endpoint_{field}",
                    disabled=locked,
                    persist_state="session",
                )
        _interface(locked)
    _deployment(locked)


def _key_field(locked: bool) -> None:
    # Each run has a field of its own: an emptied one would keep its dots in the browser.
    turn = st.session_state.setdefault(_TURN, 0)
    st.text_input(
        "Key",
        type="password",
        key=f"{_KEY}_{turn}",
        disabled=locked,
        autocomplete="off",
        placeholder="none",
        help="Sent to this address only, for one run, and then forgotten. It is never written or shown.",
    )


def _field(name: str, label: str, default: str, locked: bool, placeholder: str = "") -> None:
    st.text_input(
        label,
        default,
        key=f"endpoint_{name}",
        disabled=locked,
        placeholder=placeholder,
        max_chars=2000,
        persist_state="session",
    )


def _interface(locked: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Interface",
            APIS,
            default=APIS[0],
            required=True,
            key="endpoint_api",
            disabled=locked,
            persist_state="session",
        )
        st.toggle(
            "Answers of full length",
            True,
            key="endpoint_full_length",
            disabled=locked,
            persist_state="session",
            help="Sends `ignore_eos`, so that no answer ends early. A server that does not know the field "
            "refuses it: switch this off then.",
        )


def _deployment(locked: bool) -> None:
    """What runs behind the server; without it nothing is predicted."""
    known, chips = catalogue(), accelerators()
    one, two = st.columns(2, gap="medium")
    with one:
        _choice(
            "model_id",
            "Model behind it",
            list(known),
            lambda key: words.model_label(known[key]),
            locked=locked,
        )
    with two:
        _choice("accelerator", "Runs on", [THIS_COMPUTER, *chips], _place, locked=locked)
    part = print_view.fold("Chips and formats behind it", key="endpoint_more")
    if part.open:
        with part.place:
            for column, (name, label) in zip(st.columns(2), _DEGREES.items(), strict=True):
                with column:
                    st.number_input(
                        label, 1, 64, 1, key=f"endpoint_{name}", disabled=locked, persist_state="session"
                    )
            weights, kv = st.columns(2)
            with weights:
                _choice(
                    "weights", "Weight format", _WEIGHTS, words.format_label, locked=locked, default="bf16"
                )
            with kv:
                _choice("kv", "KV format", _CACHES, words.format_label, locked=locked, default="bf16")


def _choice(
    name: str,
    label: str,
    options: Sequence[str],
    label_of: Callable[[str], str],
    *,
    locked: bool,
    default: str | None = None,
) -> None:
    st.selectbox(
        label,
        options,
        index=None if default is None else options.index(default),
        key=f"endpoint_{name}",
        format_func=label_of,
        placeholder="not said: no prediction",
        disabled=locked,
        persist_state="session",
    )


def _place(key: str) -> str:
    return "This computer" if key == THIS_COMPUTER else words.chip_label(accelerators()[key])


def _now(name: str, default: Any) -> Any:  # noqa: ANN401 (a widget's value)
    value = st.session_state.get(f"endpoint_{name}")
    return default if value is None else value


def request() -> EndpointRequest:
    """What the controls ask for; not checked yet."""
    return EndpointRequest(
        url=_now("url", "").strip(),
        model=_now("model", "").strip(),
        api=_now("api", APIS[0]),
        levels=tuple(sorted(_now("levels", [1]))),
        full_length=_now("full_length", True),
        silence_s=_SILENCE_S,
        request_s=_REQUEST_S,
        run_s=RUN_S,
        **{name: _now(name, default) for name, _, default, _, _ in _NUMBERS},
    )


def prediction(asked: EndpointRequest) -> EndpointPrediction | None:
    """The prediction for a request on what the controls name; None where they name nothing.

    Raises:
        UserError: there can be none, as a sentence.
    """
    model_id, place = _now("model_id", None), _now("accelerator", None)
    if model_id is None or place is None:
        return None
    deployment = Deployment(
        model_id, place, _now("count", 1), _now("tp", 1), _now("weights", "bf16"), _now("kv", "bf16")
    )
    return predict(asked, deployment, model(model_id))


def take_key() -> str:
    """The key that was typed, which the page forgets: the next run has a new and empty field."""
    turn = st.session_state.get(_TURN, 0)
    st.session_state[_TURN] = turn + 1
    return str(st.session_state.pop(f"{_KEY}_{turn}", None) or "").strip()
