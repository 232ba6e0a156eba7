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
from core.catalog.near_names import one_of
from core.catalog.runnable import is_runnable
from core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Published:
    """What the publisher says a model counts.

    Attributes:
        parameters: the exact published total; None where only a rounded one is known.
        rounded: the total and the active part as the publisher names the model ("~35B"), if so.
        extras: names of the parts of ``ModelSpec.extras`` that the total contains.
        unexplained_parameters: what of the total the config does not explain, and ``unexplained`` why.
        source: where the total was read.
    """

    parameters: int | None
    rounded: str
    extras: tuple[str, ...]
    unexplained_parameters: int
    unexplained: str
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
        raise ConfigError(one_of("The model", id, catalogue(), "models"))
    return catalogue()[id]


@cache
def runnable_ids() -> tuple[str, ...]:
    """The models that the app's own engine can run, smallest first.

    >>> "smollm2-135m" in runnable_ids(), "deepseek-v3" in runnable_ids()
    (True, False)
    """
    return tuple(key for key, spec in catalogue().items() if is_runnable(spec))


def published(id: str) -> Published:
    """What the publisher of a catalogue model says it counts, with its source."""
    table = _tables()[id]
    return Published(
        parameters=table.get("published_parameters"),
        rounded=table.get("published_rounded", ""),
        extras=tuple(table.get("published_extras", ())),
        unexplained_parameters=table.get("unexplained_parameters", 0),
        unexplained=table.get("unexplained", ""),
        source=table.get("parameters_source", ""),
    )
