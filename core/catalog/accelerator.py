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
    """A connection between chips; rates are one-way, per chip, all its links together.

    ``chips`` is how many it joins at most; None where nobody says, a server's usual eight then.
    """

    id: str
    name: str
    bandwidth_bytes_per_s: float
    latency_s: float | None
    source: str
    date: str
    note: str = ""
    chips: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What one chip costs for an hour on demand, as a span of the lists that were read.

    Attributes:
        low_usd_per_hour, high_usd_per_hour: cheapest and dearest list found; equal where one was found.
        low_date, high_date: when each was read, ISO. source: where the cheapest was read.
    """

    low_usd_per_hour: float
    high_usd_per_hour: float
    low_date: str
    high_date: str
    source: str


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One product, keyed by form factor and memory (never "H100" alone).

    Attributes:
        kind: the class that efficiency priors are kept by, one of ``custom_chip.KINDS``.
        capacity_bytes: memory that software sees, before any framework overhead; None where nobody
            has published it (the number on the box is another quantity).
        bandwidth_bytes_per_s: peak memory bandwidth, decimal.
        peak_flops_per_s: dense peak by compute format; a format that is absent is not supported.
        link: the link to its neighbours, None where it has none.
        facts: every number above (and more) as it was read, by name.
        vendor, architecture, form_factor, memory_type, remark: words of its data sheet; empty where unknown.
        year: of its launch; None where unknown. announced: no such chip was measured outside its vendor.
        power_w: what the vendor states as its largest draw; None where it states none.
        price: what an hour costs; None where no dated list was found.
    """

    id: str
    name: str
    kind: str
    capacity_bytes: float | None
    bandwidth_bytes_per_s: float
    peak_flops_per_s: Mapping[str, float]
    link: Link | None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    vendor: str = ""
    architecture: str = ""
    form_factor: str = ""
    memory_type: str = ""
    year: int | None = None
    announced: bool = False
    power_w: float | None = None
    price: Price | None = None
    remark: str = ""
