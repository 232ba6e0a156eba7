"""The models that the app knows by name, from ``assets/models.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from core.catalog.assets import read_toml
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Published:
    """What the publisher says a model counts.

    Attributes:
        parameters: the exact published total.
        extra_parameters: the part of it that is no trained tensor of its own (a stored copy, a buffer).
        extra: what that part is. source: where the total was read.
    """

    parameters: int
    extra_parameters: int
    extra: str
    source: str


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return read_toml("models")


@cache
def catalogue() -> Mapping[str, ModelSpec]:
    """Every model by id, smallest first.

    >>> catalogue()["smollm2-135m"].num_layers
    30
    """
    return MappingProxyType(
        {
            key: read_config(table, id=key, name=table["name"], source=table["source"])
            for key, table in _tables().items()
        }
    )


def model(id: str) -> ModelSpec:
    """Look a model up.

    Raises:
        ConfigError: no model of the catalogue has this id.
    """
    if id not in catalogue():
        raise ConfigError(
            f"The model must be one of {', '.join(catalogue())}; got {id[:80]!r}. "
            "Any other model can be given by its config.json."
        )
    return catalogue()[id]


def published(id: str) -> Published:
    """What the publisher of a catalogue model says it counts, with its source."""
    table = _tables()[id]
    return Published(
        parameters=table["published_parameters"],
        extra_parameters=table.get("extra_parameters", 0),
        extra=table.get("extra", ""),
        source=table["parameters_source"],
    )
