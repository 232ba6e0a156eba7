"""The accelerators that the app knows by name, and the links between them.

``assets/accelerators.csv`` holds one row a fact, with its unit, source and date; a fact that is
not there is unknown, and stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Final

from core.catalog.accelerator import THIS_COMPUTER, Accelerator, Fact, Link, Price
from core.catalog.assets import read_csv
from core.catalog.near_names import one_of
from core.errors import ScenarioError
from core.units import GB, GIB, MIB

_UNITS: Final[dict[str, float]] = {
    "B": 1,
    "MiB": MIB,
    "GiB": GIB,
    "GB": GB,
    "KB": 1e3,
    "MB": 1e6,
    "GB/s": GB,
    "TFLOP/s": 1e12,
    "TOP/s": 1e12,
    "W": 1,
    "USD/h": 1,
    "count": 1,
    "year": 1,
}
#: Facts that are dense peaks, by the compute format whose name they bear.
COMPUTE_FORMATS: Final = ("fp32", "fp16", "bf16", "fp8", "int8", "int4", "fp4")
_MICROSECOND: Final = 1e-6


@cache
def links() -> Mapping[str, Link]:
    """Every link by id; bandwidths are one-way, per chip.

    >>> links()["nvlink-4"].bandwidth_bytes_per_s
    450000000000.0
    """
    return MappingProxyType({row["link"]: _link(row) for row in read_csv("links")})


def _link(row: dict[str, str]) -> Link:
    latency = row["latency_us"]
    return Link(
        id=row["link"],
        name=row["name"],
        bandwidth_bytes_per_s=float(row["bandwidth_gb_per_s"]) * GB,
        latency_s=float(latency) * _MICROSECOND if latency else None,
        source=row["source"],
        date=row["date"],
        note=row["note"],
        chips=int(row["chips"]) if row["chips"] else None,
    )


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Every accelerator by id. "This computer" is not among them: it is measured, not looked up.

    >>> accelerators()["h200-sxm-141gb"].peak_flops_per_s["bf16"]
    989400000000000.0
    """
    rows = groupby(read_csv("accelerators"), key=lambda row: row["accelerator"])
    return MappingProxyType({key: _accelerator(key, list(group)) for key, group in rows})


def _accelerator(id: str, rows: list[dict[str, str]]) -> Accelerator:
    words = {row["fact"]: row["value"] for row in rows if row["unit"] == "text"}
    facts = {
        row["fact"]: Fact(float(row["value"]), row["unit"], row["source"], row["date"], row["note"])
        for row in rows
        if row["unit"] != "text"
    }
    usable, power, year = (facts.get(name) for name in ("usable_memory", "tdp", "year"))
    return Accelerator(
        id=id,
        name=words["name"],
        kind=words["kind"],
        capacity_bytes=None if usable is None else in_base_units(usable),
        bandwidth_bytes_per_s=in_base_units(facts["bandwidth"]),
        peak_flops_per_s=MappingProxyType(
            {name: in_base_units(facts[name]) for name in COMPUTE_FORMATS if name in facts}
        ),
        link=links()[words["link"]] if "link" in words else None,
        facts=MappingProxyType(facts),
        vendor=words.get("vendor", ""),
        architecture=words.get("architecture", ""),
        form_factor=words.get("form_factor", ""),
        memory_type=words.get("memory_type", ""),
        year=None if year is None else int(year.value),
        announced=words.get("status") == "announced",
        power_w=None if power is None else in_base_units(power),
        price=_price(facts),
        remark=words.get("remark", ""),
    )


def _price(facts: Mapping[str, Fact]) -> Price | None:
    if "price_low" not in facts:
        return None
    low, high = facts["price_low"], facts["price_high"]
    return Price(low.value, high.value, low.date, high.date, low.source)


def in_base_units(fact: Fact) -> float:
    """A fact's value in bytes, bytes per second, FLOP per second, watts, dollars an hour, or a count."""
    return fact.value * _UNITS[fact.unit]


def accelerator(id: str) -> Accelerator:
    """Look an accelerator up.

    Raises:
        ScenarioError: no data sheet of the catalogue has this id.
    """
    if id == THIS_COMPUTER:
        raise ScenarioError(
            "This computer has no data sheet; its speed is measured. Run `python -m core bench` or open "
            "the lab page, or choose one of `python -m core list accelerators`."
        )
    if id not in accelerators():
        raise ScenarioError(one_of("The accelerator", id, accelerators(), "accelerators"))
    return accelerators()[id]
