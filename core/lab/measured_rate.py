"""What one kind of operator reaches in one format, as a calibration measured it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from core.analytic.machine import Rate
from core.analytic.table import Kind
from core.catalog.formats import STORAGE_FORMATS
from core.lab.checked_json import Reader
from core.lab.pace import Pace
from core.units import FLOPS_PER_MAC

KINDS: Final[tuple[Kind, ...]] = (
    "lookup",
    "norm",
    "linear",
    "rope",
    "kv_write",
    "attention",
    "elementwise",
    "sample",
)
_POSITIVE: Final = 1e-12
#: So many weights tell what one takes, its part of the scales included.
_WEIGHTS: Final = 4096
#: Kinds whose calls on few rows wait for memory to deliver what they read.
READING_KINDS: Final[frozenset[Kind]] = frozenset({"linear", "attention"})


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """The rate of one kind of operator in one format, fitted to its samples.

    Attributes:
        format: a number format, or "*" for every one that has no entry of its own.
        spread: half of p10 to p90 over the median, the middle one over its samples.
        kernel: what computes it, as the engine names it.
        operator: the operator it is of; empty for every operator of the kind.
        beside: the format of the weights in the model that it ran in; empty for every model.
    """

    kind: Kind
    format: str
    rate: Rate
    spread: float
    kernel: str = ""
    operator: str = ""
    beside: str = ""

    def at_pace(self, then: Pace, now: Pace) -> MeasuredRate:
        """The same kind of operator on a machine that was at pace ``then`` and is at ``now``."""
        rate = self.rate
        byte_s = then.seconds_at(now, 1 / rate.bytes_per_s, 1.0 if self.kind in READING_KINDS else 0.0)
        factor = 1 / (byte_s * rate.bytes_per_s)
        flops = tuple(
            f * (factor if n == 1 else self._many_rows_factor(n, f, then, now))
            for n, f in zip(rate.rows, rate.flops_per_s, strict=True)
        )
        fixed_s = rate.fixed_s * then.slower_work(now)
        moved = tuple(factor * each for each in rate.rows_bytes_per_s)
        return replace(self, rate=Rate(fixed_s, 1 / byte_s, rate.rows, flops, moved))

    @classmethod
    def from_reader(cls, reader: Reader) -> MeasuredRate:
        """Read it back, or raise a RecordError."""
        kind = reader.text("kind", KINDS)
        rate = reader.inner("rate")
        rows, flops = rate.numbers("rows", 1), rate.numbers("flops_per_s", _POSITIVE)
        if not rows or len(rows) != len(flops) or list(rows) != sorted(set(rows)):
            rate.refuse("rows", "as many increasing rows as rates")
        moved = rate.numbers("rows_bytes_per_s", 1) if "rows_bytes_per_s" in rate.data else ()
        if len(moved) not in {0, len(rows)}:
            rate.refuse("rows_bytes_per_s", "none, or as many as rows")
        return cls(
            kind=next(known for known in KINDS if known == kind),
            format=reader.text("format"),
            rate=Rate(rate.number("fixed_s", 0, 10), rate.number("bytes_per_s", 1), rows, flops, moved),
            spread=reader.number("spread", 0, 1e6),
            kernel=reader.text("kernel"),
            operator=reader.text("operator"),
            beside=reader.text("beside"),
        )

    def _many_rows_factor(self, rows: float, flops_per_s: float, then: Pace, now: Pace) -> float:
        """How much faster a product of several rows is at another pace.

        Of few rows it may still wait for its weights, as a single row does; of many it does not.
        """
        form = STORAGE_FORMATS.get(self.format)
        if self.kind != "linear" or form is None:
            return now.slower_work(then)
        byte_s = FLOPS_PER_MAC * rows * _WEIGHTS / (flops_per_s * float(form.vector_bytes(_WEIGHTS)))
        return byte_s / then.seconds_at(now, byte_s, 1.0)
