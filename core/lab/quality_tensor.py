"""One matrix in detail: its histogram, some grids over it, and what each way of rounding takes from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.lab.checked_json import Reader
from core.numerics.error import ratio_db, sqnr_by_row_db, sqnr_db
from core.numerics.histogram import Histogram, histogram
from core.numerics.quantise import Granularity, Quantised, Scheme, quantise

GROUPS: Final = (128, 64, 32)
_BITS: Final = (8, 4)
#: The grids that are drawn have so many bits; more levels could not be told apart.
_DRAWN_BITS: Final = 4


@dataclass(frozen=True, slots=True)
class GridRecord:
    """An even grid: ``count`` levels from ``low`` on, ``scale`` apart. name: what of the matrix shares it."""

    name: str
    low: float
    scale: float
    count: int

    @classmethod
    def from_reader(cls, reader: Reader) -> GridRecord:
        """Read it back, or raise a RecordError."""
        return cls(
            name=reader.text("name"),
            low=reader.number("low", -1e9, 1e9),
            scale=reader.number("scale", 1e-30, 1e9),
            count=reader.whole("count", 2, 256),
        )


@dataclass(frozen=True, slots=True)
class SchemeRecord:
    """The error of one way of rounding the matrix; None where nothing was lost.

    Attributes:
        shared_by: what has one grid: "tensor", "row", or "groups of N".
        expected_db: with an error of ``scale**2 / 12`` a number, as if it fell anywhere within a step.
        worst_row_db: of the worst output channel.
    """

    bits: int
    shared_by: str
    symmetric: bool
    bits_per_weight: float
    expected_db: float
    sqnr_db: float | None
    worst_row_db: float | None

    @classmethod
    def from_reader(cls, reader: Reader) -> SchemeRecord:
        """Read it back, or raise a RecordError."""
        return cls(
            bits=reader.whole("bits", 2, 8),
            shared_by=reader.text("shared_by"),
            symmetric=reader.flag("symmetric"),
            bits_per_weight=reader.number("bits_per_weight", 1, 64),
            expected_db=reader.number("expected_db", -500, 500),
            sqnr_db=reader.optional_number("sqnr_db", -500, 500),
            worst_row_db=reader.optional_number("worst_row_db", -500, 500),
        )


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One matrix.

    Attributes:
        layer, operator: which. num_rows, num_columns: its shape. low, high: ends of the histogram.
        counts: numbers in each of its bins, all as wide. grids: some grids of 4 bits over it.
        schemes: the errors of every granularity that its rows allow.
    """

    layer: int
    operator: str
    num_rows: int
    num_columns: int
    low: float
    high: float
    counts: tuple[int, ...]
    grids: tuple[GridRecord, ...]
    schemes: tuple[SchemeRecord, ...]

    @property
    def histogram(self) -> Histogram:
        """The bins, as the picture takes them."""
        return Histogram(self.low, self.high, self.counts)

    @classmethod
    def from_reader(cls, reader: Reader) -> TensorRecord:
        """Read it back, or raise a RecordError."""
        return cls(
            layer=reader.whole("layer", 0, 10_000),
            operator=reader.text("operator"),
            num_rows=reader.whole("num_rows", 1),
            num_columns=reader.whole("num_columns", 1),
            low=reader.number("low", -1e9, 1e9),
            high=reader.number("high", -1e9, 1e9),
            counts=tuple(int(count) for count in reader.numbers("counts", 0, 1e12)),
            grids=tuple(map(GridRecord.from_reader, reader.objects("grids"))),
            schemes=tuple(map(SchemeRecord.from_reader, reader.objects("schemes"))),
        )


def tensor_record(values: NDArray[np.float32], layer: int, operator: str) -> TensorRecord:
    """Look at one matrix [out, in]: its histogram, three grids of 4 bits, and every granularity's error."""
    bins = histogram(values)
    return TensorRecord(
        layer=layer,
        operator=operator,
        num_rows=values.shape[0],
        num_columns=values.shape[1],
        low=bins.low,
        high=bins.high,
        counts=bins.counts,
        grids=_grids(values),
        schemes=tuple(_error(values, scheme) for scheme in schemes(values.shape[1])),
    )


def schemes(columns: int) -> Iterator[Scheme]:
    """Every granularity that rows of this length allow, at 8 and 4 bits, symmetric and not."""
    shared: list[tuple[Granularity, int]] = [("tensor", 1), ("row", 1)]
    shared += [("group", size) for size in GROUPS if columns % size == 0]
    for bits in _BITS:
        for granularity, group in shared:
            for symmetric in (True, False):
                yield Scheme(bits, granularity, group, symmetric, "bf16")


def shared_by(scheme: Scheme) -> str:
    """What shares a grid, in words.

    >>> shared_by(Scheme(granularity="group", group=64)), shared_by(Scheme())
    ('groups of 64', 'row')
    """
    return f"groups of {scheme.group}" if scheme.granularity == "group" else scheme.granularity


def _error(values: NDArray[np.float32], scheme: Scheme) -> SchemeRecord:
    found = quantise(values, scheme)
    dense = found.dense()
    noise = float(np.mean(found.scale.astype(np.float64) ** 2)) / 12 * values.size
    return SchemeRecord(
        bits=scheme.bits,
        shared_by=shared_by(scheme),
        symmetric=scheme.symmetric,
        bits_per_weight=scheme.bits_per_number(*values.shape),
        expected_db=ratio_db(float((values.astype(np.float64) ** 2).sum()), noise),
        sqnr_db=_finite(sqnr_db(values, dense)),
        worst_row_db=_finite(float(sqnr_by_row_db(values, dense).min())),
    )


def _grids(values: NDArray[np.float32]) -> tuple[GridRecord, ...]:
    whole = quantise(values, Scheme(_DRAWN_BITS, "tensor"))
    rows = quantise(values, Scheme(_DRAWN_BITS, "row"))
    order = np.argsort(rows.scale[:, 0])
    middle, narrowest = int(order[len(order) // 2]), int(order[0])
    return (
        _grid("the whole matrix", whole, 0),
        _grid(f"its middle row, {middle}", rows, middle),
        _grid(f"its narrowest row, {narrowest}", rows, narrowest),
    )


def _grid(name: str, found: Quantised, row: int) -> GridRecord:
    levels = found.grid(row)
    return GridRecord(name, float(levels[0]), float(found.scale[row, 0]), len(levels))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
