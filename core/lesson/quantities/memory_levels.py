"""The memories of a chip, from its registers to its host: how much each holds, and how fast it delivers.

What a data sheet tells is in the catalogue; ``assets/chip_levels.csv`` adds what is inside some chips. A
level that nobody has published is left out, and an unknown size or bandwidth stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from core.analytic.kv_cache import cache_bytes
from core.analytic.params import layer_kinds, layer_weights, weight_plan
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import accelerators, in_base_units, links
from core.catalog.assets import read_csv
from core.errors import ConfigError
from core.lesson.amount import LessonCase, held_tokens

REGISTERS: Final = "registers"
SHARED: Final = "shared_memory"
L2: Final = "l2_cache"
MEMORY: Final = "memory"
NEIGHBOUR: Final = "another_chip"
HOST: Final = "host"
#: What a page calls each, from the units outwards.
TITLES: Final = {
    REGISTERS: "registers",
    SHARED: "shared memory",
    L2: "L2 cache",
    MEMORY: "memory",
    NEIGHBOUR: "another chip",
    HOST: "host",
}
#: What can be read: a matrix, a layer, everything, or what earlier tokens left.
DATA: Final = ("one matrix", "one layer", "all weights", "KV cache")
_MEGA: Final = 1e6


@dataclass(frozen=True, slots=True)
class Level:
    """One memory that the units can be fed from.

    Attributes:
        name: a key of ``TITLES``. what: how a data sheet calls it ("NVLink 4"); empty where the name says it.
        capacity_bytes: all of it, on the whole chip; None where it is unknown or another machine's.
        bandwidth_bytes_per_s: what it delivers to the units, one way; None where it is unknown.
    """

    name: str
    what: str
    capacity_bytes: float | None
    bandwidth_bytes_per_s: float | None

    @property
    def title(self) -> str:
        """What a page calls it."""
        return TITLES[self.name]


@cache
def _inside() -> Mapping[str, Mapping[str, str]]:
    """Chip -> fact -> value, in the units of the file."""
    found: dict[str, dict[str, str]] = {}
    for row in read_csv("chip_levels"):
        found.setdefault(row["accelerator"], {})[row["fact"]] = row["value"]
    return found


def levels(case: LessonCase) -> list[Level]:
    """What is known of the case's chip, from the units outwards.

    A chip of the visitor's own has its memory and its link.
    """
    chip = accelerators().get(case.machine.id)
    own = Level(MEMORY, "", case.machine.capacity_bytes, case.machine.bandwidth_bytes_per_s)
    within = [] if chip is None else _on_chip(chip)
    return [*within, own, *_outside(case)]


def _on_chip(chip: Accelerator) -> list[Level]:
    known = _inside().get(chip.id, {})
    facts = {name: in_base_units(fact) for name, fact in chip.facts.items()}
    cores, clock = facts.get("cores"), float(known.get("clock", 0)) * _MEGA
    found = []
    if cores and "registers_per_core" in known:
        found.append(Level(REGISTERS, "", cores * float(known["registers_per_core"]), None))
    if cores and "shared_memory_per_core" in facts:
        rate = cores * clock * float(known["shared_per_clock"]) if "shared_per_clock" in known else None
        found.append(Level(SHARED, "", cores * facts["shared_memory_per_core"], rate))
    if "l2_cache" in facts:
        rate = clock * float(known["l2_per_clock"]) if "l2_per_clock" in known else None
        found.append(Level(L2, "", facts["l2_cache"], rate))
    return found


def _outside(case: LessonCase) -> list[Level]:
    link, host = case.machine.link, _inside().get(case.machine.id, {}).get("host_link")
    found = []
    if link is not None:
        name = HOST if link.id.startswith("pcie") else NEIGHBOUR
        found.append(Level(name, link.name, None, link.bandwidth_bytes_per_s))
    if host is not None:
        found.append(Level(HOST, links()[host].name, None, links()[host].bandwidth_bytes_per_s))
    return found


def level(case: LessonCase, name: str) -> Level | None:
    """A level by name; None where the chip has none that is known."""
    return next((found for found in levels(case) if found.name == name), None)


def level_names(case: LessonCase) -> list[str]:
    """The names of the chip's levels, the memory first: it is what a page opens."""
    names = [found.name for found in levels(case)]
    return [MEMORY, *(name for name in names if name != MEMORY)]


def data_bytes(case: LessonCase, data: str) -> float:
    """Bytes of what is read: the largest matrix of a layer, a layer, all layers, or the batch's cache.

    Raises:
        ConfigError: the model keeps no cache.
    """
    if data == "KV cache":
        kept = float(cache_bytes(case.model, case.scenario.kv, case.scenario.batch, held_tokens(case)))
        if kept == 0:
            raise ConfigError("This model keeps a state instead of a KV cache. Choose other data to read.")
        return kept
    plan = weight_plan(case.scenario.weights, case.model)
    by_layer = [
        (
            repeats,
            [plan.bytes_of(w) for ws in layer_weights(layer, case.model.hidden_size).values() for w in ws],
        )
        for layer, repeats in layer_kinds(case.model)
    ]
    if data == "all weights":
        return float(sum(repeats * sum(sizes) for repeats, sizes in by_layer))
    largest = max(by_layer, key=lambda kind: sum(kind[1]))[1]
    return float(max(largest) if data == "one matrix" else sum(largest))
