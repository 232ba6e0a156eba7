"""The settings of one answer in a link: everything but the prompt, which stays on the visitor's page.

Keys start with ``lab_`` so that the scenario's own keys keep their meaning on every page; see
``link_fields`` for how a value is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from core.catalog.formats import FORMATS
from core.lab.request import CACHES, DEVICES, MAX_NEW_TOKENS, RunRequest
from core.ui.lab import link_fields
from core.ui.lab.link_fields import SWITCH, LinkField

PREFIX: Final = "lab_"
WEIGHTS: Final = tuple(record.id for record in FORMATS.values() if "weights" in record.uses)
KV: Final = tuple(record.id for record in FORMATS.values() if "kv" in record.uses)

#: Field of the request -> how a link holds it; which models there are depends on the server.
_FIELDS: Final[dict[str, LinkField]] = {
    "model": LinkField("model", "model"),
    "weights": LinkField("weights", "weight format", WEIGHTS),
    "kv": LinkField("kv", "KV format", KV),
    "cache": LinkField("cache", "cache", CACHES),
    "device": LinkField("device", "device", DEVICES),
    "max_tokens": LinkField("tokens", "New tokens", limits=(1, MAX_NEW_TOKENS)),
    "raw": LinkField("raw", "raw switch", SWITCH),
    "temperature": LinkField("temperature", "The temperature", limits=(0.0, 5.0)),
    "top_k": LinkField("top_k", "Top-k", limits=(0, 1_000_000)),
    "top_p": LinkField("top_p", "Top-p", limits=(0.01, 1.0)),
    # The largest whole number that a browser keeps exactly.
    "seed": LinkField("seed", "The seed", limits=(0, 2**53 - 1)),
}

#: Field of the request -> key in the link, without its prefix.
KEYS: Final[dict[str, str]] = {name: field.key for name, field in _FIELDS.items()}
#: Smallest and largest value of each number, also for the page's number fields.
LIMITS: Final[dict[str, tuple[float, float]]] = {
    name: field.limits for name, field in _FIELDS.items() if field.limits is not None
}


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
    return link_fields.encode(request, RunRequest(), _FIELDS, PREFIX)


def decode(params: Mapping[str, str], models: Collection[str], prompt: str) -> DecodedSettings:
    """Read settings from query parameters; what does not hold is repaired and said.

    Args:
        params: the link's parameters; keys without the prefix belong to others.
        models: ids that may be chosen.
        prompt: kept, whatever the link says.

    >>> decode({"lab_tokens": "9999"}, ["smollm2-135m"], "Hello").notes
    ('New tokens must be from 1 to 512; the link says 9,999, so 512 is used.',)
    """
    fields = {**_FIELDS, "model": LinkField("model", "model", models)}
    return DecodedSettings(*link_fields.decode(params, RunRequest(prompt=prompt), fields, PREFIX))
