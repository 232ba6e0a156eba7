"""The scenario: what is served, on what, how. One record that every page and link shares.

The link codec uses short keys, leaves defaults out, clamps values to their limits and replaces
unknown names by the default; each such repair is reported as a sentence, never done silently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from core.catalog.formats import STORAGE_FORMATS

VERSION: Final = "1"
#: How the keys of a visitor's own models and chips begin; no catalogue key does.
OWN_PREFIX: Final = "own:"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A model on accelerators with a workload; integers are counts of what their name says."""

    model: str = "llama-3.1-8b"
    accelerator: str = "h100-sxm-80gb"
    count: int = 1
    weights: str = "bf16"
    kv: str = "bf16"
    batch: int = 1
    input_tokens: int = 2048
    output_tokens: int = 256
    tp: int = 1
    pp: int = 1
    ep: int = 1


@dataclass(frozen=True, slots=True)
class Decoded:
    """A scenario read from a link, and a sentence for each value that had to be repaired."""

    scenario: Scenario
    notes: tuple[str, ...]


#: Field of the record -> key in the link.
KEYS: Final[dict[str, str]] = {
    "model": "m",
    "accelerator": "a",
    "count": "n",
    "weights": "w",
    "kv": "k",
    "batch": "b",
    "input_tokens": "i",
    "output_tokens": "o",
    "tp": "tp",
    "pp": "pp",
    "ep": "ep",
}

#: Smallest and largest value of each count.
LIMITS: Final[dict[str, tuple[int, int]]] = {
    "count": (1, 1024),
    "batch": (1, 65_536),
    "input_tokens": (1, 2_000_000),
    "output_tokens": (1, 1_000_000),
    "tp": (1, 64),
    "pp": (1, 128),
    "ep": (1, 512),
}

_LABELS: Final[dict[str, str]] = {
    "model": "model",
    "accelerator": "accelerator",
    "count": "number of accelerators",
    "weights": "weight format",
    "kv": "KV format",
    "batch": "batch",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "tp": "tensor-parallel degree",
    "pp": "pipeline-parallel degree",
    "ep": "expert-parallel degree",
}


def on_chips(scenario: Scenario, chips: int) -> Scenario:
    """The same on so many chips, or on those of one replica where its split does not divide them.

    The count stays within its limits.

    >>> [on_chips(Scenario(tp=4), chips).count for chips in (2, 4, 8)]
    [4, 4, 8]
    """
    share = scenario.tp * scenario.pp
    return replace(scenario, count=chips if chips % share == 0 else min(share, LIMITS["count"][1]))


def encode(scenario: Scenario) -> dict[str, str]:
    """Write a scenario as query parameters: short keys, defaults left out, the version first.

    >>> encode(Scenario(batch=8))
    {'v': '1', 'b': '8'}
    """
    default = Scenario()
    changed = {
        KEYS[field.name]: str(getattr(scenario, field.name))
        for field in fields(Scenario)
        if getattr(scenario, field.name) != getattr(default, field.name)
    }
    return {"v": VERSION, **changed} if changed else {}


def decode(
    params: Mapping[str, str],
    models: Collection[str],
    accelerators: Collection[str],
    default: Scenario | None = None,
) -> Decoded:
    """Read a scenario from query parameters; whatever does not hold is repaired and said.

    Keys that are not the scenario's own are left to the page that owns them.

    >>> decode({"b": "0"}, ["llama-3.1-8b"], ["h100-sxm-80gb"]).notes
    ('The batch must be from 1 to 65,536; the link says 0, so 1 is used.',)
    """
    default = default or Scenario()
    notes: list[str] = []
    if params.get("v", VERSION) != VERSION:
        notes.append(
            f"This link was made by another version (v={params['v']!r:.20}); what it shares with this "
            "one is used."
        )
    choices: dict[str, Collection[str]] = {
        "model": models,
        "accelerator": accelerators,
        "weights": [f.id for f in STORAGE_FORMATS.values() if "weights" in f.uses],
        "kv": [f.id for f in STORAGE_FORMATS.values() if "kv" in f.uses],
    }
    values: dict[str, str | int] = {}
    for name, key in KEYS.items():
        if key not in params:
            continue
        value, note = (
            _choose(name, params[key], choices[name], str(getattr(default, name)))
            if name in choices
            else _clamp(name, params[key], int(getattr(default, name)))
        )
        values[name] = value
        notes += [note] if note else []
    return Decoded(replace(default, **values), tuple(notes))  # type: ignore[arg-type]


def _choose(name: str, text: str, choices: Collection[str], default: str) -> tuple[str, str]:
    if text in choices:
        return text, ""
    if text.startswith(OWN_PREFIX):
        return default, (
            f"The {_LABELS[name]} {text[:80]!r} was brought by the sender, and a link does not carry it, so "
            f"{default} is used. Ask the sender for the saved file and load it here."
        )
    return default, (
        f"The {_LABELS[name]} {text[:40]!r} in the link is not known here, so {default} is used."
    )


def _clamp(name: str, text: str, default: int) -> tuple[int, str]:
    low, high = LIMITS[name]
    label = _LABELS[name]
    try:
        value = int(text) if len(text) <= 20 else int("not a number")
    except ValueError:
        return default, (
            f"The {label} must be a whole number; the link says {text[:40]!r}, so {default:,} is used."
        )
    clamped = min(max(value, low), high)
    if clamped == value:
        return value, ""
    return clamped, (
        f"The {label} must be from {low:,} to {high:,}; the link says {value:,}, so {clamped:,} is used."
    )
