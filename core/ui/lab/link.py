"""The lab's settings in a link: everything but the prompt, which stays on the visitor's page.

Keys start with ``lab_`` so that the scenario's own keys keep their meaning on every page. Defaults
are left out; a value outside its limits is clamped, an unknown name is replaced, and both are said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from core.catalog.formats import FORMATS
from core.lab.request import CACHES, DEVICES, MAX_NEW_TOKENS, RunRequest

PREFIX: Final = "lab_"

#: Field of the request -> key in the link, without its prefix.
KEYS: Final[dict[str, str]] = {
    "model": "model",
    "weights": "weights",
    "kv": "kv",
    "cache": "cache",
    "device": "device",
    "max_tokens": "tokens",
    "raw": "raw",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "seed": "seed",
}

#: Smallest and largest value of each number, also for the page's number fields.
LIMITS: Final[dict[str, tuple[float, float]]] = {
    "max_tokens": (1, MAX_NEW_TOKENS),
    "temperature": (0.0, 5.0),
    "top_k": (0, 1_000_000),
    "top_p": (0.01, 1.0),
    "seed": (0, 2**53 - 1),  # the largest whole number that a browser keeps exactly
}

_LONGEST_NUMBER: Final = 24


@dataclass(frozen=True, slots=True)
class DecodedSettings:
    """Settings read from a link, and a sentence for each value that had to be repaired."""

    request: RunRequest
    notes: tuple[str, ...]


def encode(request: RunRequest) -> dict[str, str]:
    """Write the settings that differ from the defaults as query parameters.

    >>> encode(RunRequest(prompt="private", weights="int8"))
    {'lab_weights': 'int8'}
    """
    default = RunRequest()
    return {
        PREFIX + KEYS[field.name]: _written(getattr(request, field.name))
        for field in fields(RunRequest)
        if field.name in KEYS and getattr(request, field.name) != getattr(default, field.name)
    }


def decode(params: Mapping[str, str], models: Collection[str], prompt: str) -> DecodedSettings:
    """Read settings from query parameters; what does not hold is repaired and said.

    Args:
        params: the link's parameters; keys without the prefix belong to others.
        models: ids that may be chosen.
        prompt: kept, whatever the link says.

    >>> decode({"lab_tokens": "9999"}, ["smollm2-135m"], "Hello").notes
    ('New tokens must be from 1 to 512; the link says 9,999, so 512 is used.',)
    """
    default = RunRequest(prompt=prompt)
    values: dict[str, Any] = {}
    notes: list[str] = []
    for name, key in KEYS.items():
        text = params.get(PREFIX + key)
        if text is None:
            continue
        value, note = _read(name, text, models)
        if note:
            notes.append(note)
        values[name] = value
    known = {PREFIX + key for key in KEYS.values()}
    notes += [
        f"The link has a setting {name[:40]!r} that this page does not know; it is ignored."
        for name in params
        if name.startswith(PREFIX) and name not in known
    ]
    return DecodedSettings(replace(default, **values), tuple(notes[:8]))


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _read(name: str, text: str, models: Collection[str]) -> tuple[Any, str]:
    default = getattr(RunRequest(), name)
    if name in LIMITS:
        return _number(name, text, default)
    choices = _choices(name, models)
    if text not in choices:
        shown = _written(default)
        return (
            default,
            f"The {_LABELS[name]} {text[:40]!r} in the link is not known here, so {shown} is used.",
        )
    return (text == "1") if name == "raw" else text, ""


def _choices(name: str, models: Collection[str]) -> Collection[str]:
    return {
        "model": models,
        "weights": [record.id for record in FORMATS.values() if "weights" in record.uses],
        "kv": [record.id for record in FORMATS.values() if "kv" in record.uses],
        "cache": CACHES,
        "device": DEVICES,
        "raw": ("0", "1"),
    }[name]


_LABELS: Final[dict[str, str]] = {
    "model": "model",
    "weights": "weight format",
    "kv": "KV format",
    "cache": "cache",
    "device": "device",
    "raw": "raw switch",
    "max_tokens": "New tokens",
    "temperature": "The temperature",
    "top_k": "Top-k",
    "top_p": "Top-p",
    "seed": "The seed",
}


def _number(name: str, text: str, default: float) -> tuple[float, str]:
    low, high = LIMITS[name]
    whole = isinstance(default, int)
    try:
        value = float(text) if len(text) <= _LONGEST_NUMBER else float("nan")
        value = int(text) if whole and value == value else value  # noqa: PLR0124 - false for a NaN
    except (ValueError, OverflowError):
        value = float("nan")
    label = _LABELS[name]
    if value != value:  # noqa: PLR0124
        kind = "whole number" if whole else "number"
        return default, f"{label} must be a {kind}; the link says {text[:40]!r}, so {default:,} is used."
    clamped = min(max(value, type(default)(low)), type(default)(high))
    if clamped == value:
        return value, ""
    return clamped, (
        f"{label} must be from {low:,} to {high:,}; the link says {value:,}, so {clamped:,} is used."
    )
