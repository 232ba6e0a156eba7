"""Every chip of the catalogue as rows that can be sorted, and which formats each generation multiplies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from core.analytic.roofline import ridge_flops_per_byte
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import COMPUTE_FORMATS, accelerators, in_base_units
from core.units import GB

#: The class of a chip -> how a page calls it.
CLASSES: Final[dict[str, str]] = {
    "hbm": "NVIDIA, data centre",
    "gddr": "cards with GDDR memory",
    "amd": "AMD Instinct",
    "other": "TPU, Trainium, Gaudi",
    "apple": "Apple",
    "lpddr": "small boards",
    "cpu": "processors",
}


def _bits(chip: Accelerator, *formats: str) -> float | None:
    peaks = [chip.peak_flops_per_s[name] / 1e12 for name in formats if name in chip.peak_flops_per_s]
    return max(peaks, default=None)


def _memory(chip: Accelerator) -> float | None:
    if "memory" in chip.facts:
        return in_base_units(chip.facts["memory"]) / GB
    return None if chip.capacity_bytes is None else chip.capacity_bytes / GB


def _ridge(chip: Accelerator) -> float | None:
    peak = _bits(chip, "bf16", "fp16")
    return None if peak is None else ridge_flops_per_byte(peak * 1e12, chip.bandwidth_bytes_per_s)


def _link(chip: Accelerator) -> float | None:
    return None if chip.link is None else chip.link.bandwidth_bytes_per_s / GB


def _price(chip: Accelerator) -> float | None:
    return None if chip.price is None else chip.price.low_usd_per_hour


def _bandwidth_per_price(chip: Accelerator) -> float | None:
    return None if chip.price is None else chip.bandwidth_bytes_per_s / GB / chip.price.low_usd_per_hour


def _peak_per_watt(chip: Accelerator) -> float | None:
    peak = _bits(chip, "bf16", "fp16")
    return None if peak is None or chip.power_w is None else peak / chip.power_w


#: What a chip can be sorted and compared by, with its unit; None where it is not known.
COLUMNS: Final[dict[str, Callable[[Accelerator], float | None]]] = {
    "year": lambda chip: chip.year,
    "memory, GB": _memory,
    "bandwidth, GB/s": lambda chip: chip.bandwidth_bytes_per_s / GB,
    "16 bits, TFLOP/s": lambda chip: _bits(chip, "bf16", "fp16"),
    "8 bits, TFLOP/s": lambda chip: _bits(chip, "fp8", "int8"),
    "4 bits, TFLOP/s": lambda chip: _bits(chip, "fp4", "int4"),
    "corner at 16 bits, FLOP/B": _ridge,
    "link one way, GB/s": _link,
    "power, W": lambda chip: chip.power_w,
    "price from, $/h": _price,
    "GB/s for $1/h": _bandwidth_per_price,
    "TFLOP/s a watt": _peak_per_watt,
}
#: What a larger value is worse in; such columns begin with the smallest.
SMALL_IS_FIRST: Final = frozenset({"power, W", "price from, $/h"})


@dataclass(frozen=True, slots=True)
class ChipRow:
    """A chip and its value in each column; announced ones were measured by nobody but their maker."""

    id: str
    name: str
    generation: str
    announced: bool
    values: tuple[float | None, ...]

    @property
    def title(self) -> str:
        """Its name, with a word where it is only announced."""
        return f"{self.name} (announced)" if self.announced else self.name


def chip_rows(classes: Iterable[str], sort_by: str) -> list[ChipRow]:
    """The chips of some classes in the order of one column; what is unknown comes last.

    Args:
        classes: keys of ``CLASSES``.
        sort_by: a key of ``COLUMNS``.

    >>> chip_rows(["hbm"], "bandwidth, GB/s")[0].title
    'NVIDIA Rubin (per GPU) (announced)'
    """
    wanted, column = set(classes), list(COLUMNS).index(sort_by)
    rows = [_row(chip) for chip in accelerators().values() if chip.kind in wanted]
    sign = 1.0 if sort_by in SMALL_IS_FIRST else -1.0

    def place(row: ChipRow) -> tuple[bool, float, str]:
        value = row.values[column]
        return value is None, sign * (value or 0.0), row.name

    return sorted(rows, key=place)


def chip_row(key: str) -> ChipRow:
    """One chip by its key."""
    return _row(accelerators()[key])


def _row(chip: Accelerator) -> ChipRow:
    return ChipRow(
        id=chip.id,
        name=chip.name,
        generation=chip.architecture,
        announced=chip.announced,
        values=tuple(read(chip) for read in COLUMNS.values()),
    )


@dataclass(frozen=True, slots=True)
class Generation:
    """One architecture: its maker, the years of its chips, and the best dense peak in each format.

    Attributes:
        peaks: TFLOP/s by format; a format that is absent is not multiplied.
        announced: every chip of it is only announced.
    """

    name: str
    vendor: str
    first_year: int | None
    last_year: int | None
    chips: int
    peaks: dict[str, float]
    announced: bool

    @property
    def title(self) -> str:
        """Maker, name and years, with a word where all of it is only announced."""
        announced = ", announced" if self.announced else ""
        return f"{self.vendor} {self.name} ({self.years}{announced})"

    @property
    def years(self) -> str:
        """From the first of its chips to the last."""
        if self.first_year is None:
            return "unknown"
        return (
            f"{self.first_year}"
            if self.first_year == self.last_year
            else f"{self.first_year} to {self.last_year}"
        )


def generations(classes: Iterable[str]) -> list[Generation]:
    """The architectures of some classes, oldest first, by maker."""
    wanted = set(classes)
    groups: dict[tuple[str, str], list[Accelerator]] = {}
    for chip in accelerators().values():
        if chip.kind in wanted:
            groups.setdefault((chip.vendor, _family(chip.architecture)), []).append(chip)
    found = [_generation(vendor, name, chips) for (vendor, name), chips in groups.items()]
    return sorted(found, key=lambda g: (g.vendor, g.first_year or 0, g.name))


def _family(architecture: str) -> str:
    """An architecture without its die: "Ampere (GA100)" and "Ampere (GA102)" are one generation."""
    return architecture.partition(" (")[0]


def _generation(vendor: str, name: str, chips: list[Accelerator]) -> Generation:
    years = [chip.year for chip in chips if chip.year is not None]
    peaks = {
        form: max(chip.peak_flops_per_s[form] / 1e12 for chip in chips if form in chip.peak_flops_per_s)
        for form in COMPUTE_FORMATS
        if any(form in chip.peak_flops_per_s for chip in chips)
    }
    return Generation(
        name=name,
        vendor=vendor,
        first_year=min(years, default=None),
        last_year=max(years, default=None),
        chips=len(chips),
        peaks=peaks,
        announced=all(chip.announced for chip in chips),
    )
