"""The setting of a prediction: which chip, which engine, which format, and from when.

What software reaches of a chip depends on these; ``efficiency`` says how.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.catalog.accelerator import Accelerator
from core.catalog.formats import NumberFormat
from core.catalog.mixers import Attention
from core.catalog.model import ModelSpec

#: How weights are multiplied: 16-bit; 8-bit or 4-bit weights widened to 16; 4-bit in the packed layout of
#: "tinygemm", whose product is slow at many rows; 8-bit and 4-bit numbers multiplied as such.
FormatClass = Literal["16", "w8", "q4", "packed4", "fp8", "fp4"]
_WIDTHS: Final[dict[FormatClass, str]] = {
    "16": "16",
    "w8": "8",
    "fp8": "8",
    "q4": "4",
    "packed4": "4",
    "fp4": "4",
}
#: The year from which effects of time count.
YEAR_ZERO: Final = 2024.5
#: Engines that add up in 16 bits on graphics cards that halve the rate of 32-bit sums.
_SUMS_IN_16_BIT: Final = ("llama.cpp", "exllama", "tinychat")


@dataclass(frozen=True, slots=True)
class Setting:
    """What the effects depend on.

    Attributes:
        chip: where it runs. style, engine: how, as ``validation.names.Engine``.
        format: how weights are multiplied. group: query heads that share a KV head.
        year: of the software.
    """

    chip: Accelerator
    style: str
    engine: str
    format: FormatClass
    group: float = 1.0
    year: float = YEAR_ZERO

    @property
    def width(self) -> str:
        """Bits of a stored weight, rounded to 16, 8 or 4."""
        return _WIDTHS[self.format]

    @property
    def half_rate(self) -> bool:
        """The chip multiplies 16-bit numbers at half the rate when it adds up in 32 bits (GeForce)."""
        peaks = self.chip.peak_flops_per_s
        ratio = peaks.get("int8", 0.0) / wide_peak(self.chip)
        return self.chip.kind == "gddr" and ratio > 3.5

    @property
    def peak_flops_per_s(self) -> float:
        """The dense peak that its products are held against."""
        wide = wide_peak(self.chip)
        if self.format in {"fp8", "fp4"}:
            return self.chip.peak_flops_per_s.get(self.format, wide)
        return 2 * wide if self._sums_in_16_bit else wide

    @property
    def _sums_in_16_bit(self) -> bool:
        return self.half_rate and self.engine in _SUMS_IN_16_BIT

    @property
    def rate_class(self) -> str:
        """The class of chips whose products reach a like share of their peak."""
        return "half-rate" if self.half_rate and not self._sums_in_16_bit else self.chip.kind

    @property
    def link_class(self) -> str:
        """What connects chips: "nvlink", "fabric" or "pcie"."""
        if self.chip.kind == "amd":
            return "fabric"
        link = self.chip.link
        return "nvlink" if link and link.id.startswith("nvlink") and "bridge" not in link.id else "pcie"


def wide_peak(chip: Accelerator) -> float:
    """The dense peak of 16-bit products, else of 32-bit ones."""
    peaks = chip.peak_flops_per_s
    return peaks.get("bf16") or peaks.get("fp16") or peaks.get("fp32") or max(peaks.values())


def heads_per_kv_head(model: ModelSpec) -> float:
    """Query heads that share a KV head in the first layer that attends; 1 where none does."""
    for layer in model.layers:
        if isinstance(layer.mixer, Attention):
            return layer.mixer.num_heads / layer.mixer.num_kv_heads
    return 1.0


def format_class(record: NumberFormat) -> FormatClass:
    """How weights kept in a format are multiplied.

    >>> from core.catalog.formats import STORAGE_FORMATS
    >>> format_class(STORAGE_FORMATS["int4"]), format_class(STORAGE_FORMATS["int8-dynamic"])
    ('q4', 'fp8')
    """
    if record.compute == "fp4":
        return "fp4"
    if record.compute in {"fp8", "int8"}:
        return "fp8"
    if record.payload_bits >= 16:
        return "16"
    return "w8" if record.payload_bits > 6 else "q4"
