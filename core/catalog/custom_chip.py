"""A chip typed in by a visitor: the numbers of its data sheet, each held against sane bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final, NoReturn

from core.catalog.accelerator import Accelerator, Fact
from core.catalog.accelerators import COMPUTE_FORMATS
from core.errors import ScenarioError
from core.units import GB, GIB, significant

#: The classes that efficiency priors are kept by, and what they mean on a page.
KINDS: Final[dict[str, str]] = {
    "hbm": "a data-centre GPU with stacked memory",
    "gddr": "a graphics card",
    "amd": "an AMD data-centre GPU",
    "apple": "an Apple chip with unified memory",
    "lpddr": "a small computer with unified memory (Jetson, DGX Spark)",
    "other": "another data-centre accelerator (TPU, Gaudi, Trainium)",
    "cpu": "a processor",
}
#: Smallest and largest believable value, by the unit it is typed in.
MEMORY_GIB: Final = (0.25, 65_536.0)
BANDWIDTH_GB_PER_S: Final = (1.0, 1_000_000.0)
PEAK_TFLOP_PER_S: Final = (0.001, 1_000_000.0)
#: Real chips have ridges from about 5 to 800 FLOPs a byte, and up to 2,240 in whole numbers and in 4-bit
#: formats; far above, a rate is sparse or mistyped.
_HIGHEST_RIDGE: Final = 1_000.0
_HIGHEST_RIDGES: Final = {"int8": 1_300.0, "int4": 2_300.0, "fp4": 2_300.0}
_SOURCE: Final = "typed in by you"


@dataclass(frozen=True, slots=True)
class ChipSheet:
    """The numbers of one chip as they are typed.

    Attributes:
        name: what the visitor calls it. kind: one of ``KINDS``.
        memory_gib: what software sees, in GiB (2**30). bandwidth_gb_per_s: decimal gigabytes a second.
        peak_tflop_per_s: dense teraFLOPs a second, by compute format ("fp32", "bf16", ...).
    """

    name: str
    kind: str
    memory_gib: float
    bandwidth_gb_per_s: float
    peak_tflop_per_s: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A plain object."""
        return {**asdict(self), "peak_tflop_per_s": dict(self.peak_tflop_per_s)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ChipSheet:
        """Read it back; the values are checked when the chip is made.

        Raises:
            ScenarioError: a value is missing, or a text or a table is another thing.
        """
        for name in cls.__slots__:
            if name not in data:
                raise ScenarioError(f"A chip must state its {name}; it is missing. Type it in again.")
        if not isinstance(data["name"], str) or not isinstance(data["kind"], str):
            raise ScenarioError("A chip's name and kind must be text. Type them in again.")
        if not isinstance(data["peak_tflop_per_s"], Mapping):
            raise ScenarioError("A chip's peaks must be a table by format. Type them in again.")
        return cls(**{name: data[name] for name in cls.__slots__})


def make_chip(sheet: ChipSheet, id: str) -> Accelerator:
    """Check what was typed and make an accelerator of it.

    Raises:
        ScenarioError: a number is missing, not finite, out of its bounds, or they contradict each other.

    >>> chip = make_chip(ChipSheet("mine", "gddr", 24, 1008, {"bf16": 165}), "own:mine")
    >>> chip.capacity_bytes, chip.bandwidth_bytes_per_s, chip.peak_flops_per_s["bf16"]
    (25769803776.0, 1008000000000.0, 165000000000000.0)
    """
    if sheet.kind not in KINDS:
        raise ScenarioError(f"The kind of chip must be one of {', '.join(KINDS)}; got {sheet.kind[:40]!r}.")
    facts = {
        "usable_memory": _fact("memory", sheet.memory_gib, "GiB", MEMORY_GIB),
        "bandwidth": _fact("memory bandwidth", sheet.bandwidth_gb_per_s, "GB/s", BANDWIDTH_GB_PER_S),
        **_peaks(sheet.peak_tflop_per_s),
    }
    chip = Accelerator(
        id=id,
        name=sheet.name,
        kind=sheet.kind,
        capacity_bytes=facts["usable_memory"].value * GIB,
        bandwidth_bytes_per_s=facts["bandwidth"].value * GB,
        peak_flops_per_s=MappingProxyType(
            {name: facts[name].value * 1e12 for name in COMPUTE_FORMATS if name in facts}
        ),
        link=None,
        facts=MappingProxyType(facts),
    )
    _check_ridge(chip)
    return chip


def _peaks(typed: Mapping[str, float]) -> dict[str, Fact]:
    for name in typed:
        if name not in COMPUTE_FORMATS:
            raise ScenarioError(
                f"A peak must be for one of {', '.join(COMPUTE_FORMATS)}; got {str(name)[:40]!r}."
            )
    stated = {name: value for name, value in typed.items() if value is not None and value != 0}
    if not stated:
        raise ScenarioError(
            "A chip must state its dense peak in one format or more; none is stated. Look for TFLOP/s "
            "without sparsity in its data sheet."
        )
    return {name: _fact(f"{name} peak", value, "TFLOP/s", PEAK_TFLOP_PER_S) for name, value in stated.items()}


def _fact(name: str, value: object, unit: str, bounds: tuple[float, float]) -> Fact:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(name, unit, bounds, f"a {type(value).__name__}")
    if not bounds[0] <= value <= bounds[1]:  # also false for a NaN; a huge integer compares exactly
        finite = isinstance(value, float) and math.isfinite(value)
        _refuse(name, unit, bounds, f"{value:g}" if finite else _kind(value))
    return Fact(float(value), unit, _SOURCE, "")


def _kind(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else "a number of many digits"
    return str(value)


def _refuse(name: str, unit: str, bounds: tuple[float, float], came: str) -> NoReturn:
    raise ScenarioError(
        f"The {name} must be from {bounds[0]:,g} to {bounds[1]:,.0f} {unit}; got {came}. Check the number "
        "and its unit."
    )


def _check_ridge(chip: Accelerator) -> None:
    for name, peak in chip.peak_flops_per_s.items():
        ridge, highest = peak / chip.bandwidth_bytes_per_s, _HIGHEST_RIDGES.get(name, _HIGHEST_RIDGE)
        if ridge > highest:
            raise ScenarioError(
                f"The {name} peak must be at most {highest:,.0f} FLOPs for each byte of bandwidth, "
                f"which no real chip exceeds; these numbers give {significant(ridge)}. Check the units, and "
                "take the peak without sparsity."
            )
