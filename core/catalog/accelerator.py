"""An accelerator as a data sheet gives it, every number dense, one-way and with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The id that stands for the machine the app runs on. It is not reproducible from a link.
THIS_COMPUTER = "this-computer"


@dataclass(frozen=True, slots=True)
class Fact:
    """One number from the world: its value, unit, source address and the date it was read."""

    value: float
    unit: str
    source: str
    date: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection between chips; rates are one-way, per chip, all its links together."""

    id: str
    name: str
    bandwidth_bytes_per_s: float
    latency_s: float | None
    source: str
    date: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One product, keyed by form factor and memory (never "H100" alone).

    Attributes:
        kind: the class that efficiency priors are kept by: "hbm", "gddr", "amd", "cpu".
        capacity_bytes: memory that software sees, before any framework overhead; None where nobody
            has published it (the number on the box is another quantity).
        bandwidth_bytes_per_s: peak memory bandwidth, decimal.
        peak_flops_per_s: dense peak by compute format; a format that is absent is not supported.
        link: the link to its neighbours, None where it has none.
        facts: every number above (and more) as it was read, by name.
    """

    id: str
    name: str
    kind: str
    capacity_bytes: float | None
    bandwidth_bytes_per_s: float
    peak_flops_per_s: Mapping[str, float]
    link: Link | None
    facts: Mapping[str, Fact] = field(default_factory=dict)
