"""From timed operators to rates: the smallest law that the samples follow.

One call that moves b bytes and does f FLOPs on m rows takes

    fixed_s + max(b / bytes_per_s, f / flops_per_s(m))

``fixed_s`` and ``bytes_per_s`` are fitted to the calls on one row, over sizes; errors count relative
to the sample, so that small matrices weigh as much as large ones. ``flops_per_s`` then follows for
each number of rows, and so does the ``bytes_per_s`` of what only moves bytes. Rates
are of the calibration's own shapes, and a fit is as good as the law.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.analytic.machine import Rate
from core.analytic.table import Kind
from core.lab.measured_rate import READING_KINDS, MeasuredRate
from core.lab.pace import Pace

#: A rate that never limits: where nothing is moved, or where more bytes took no more time.
UNLIMITED: Final = 1e15
#: A call is at least this part size-dependent; a fixed cost cannot explain all of a large call.
_LEAST_VARIABLE: Final = 0.02
#: Moving a single row is at least this part call; its bytes cannot explain all of it.
_LEAST_FIXED: Final = 0.5
#: The operator whose matrix makes logits.
HEAD: Final = "lm_head"
#: The key of a rate for every format.
ANY_FORMAT: Final = "*"

Item = TypeVar("Item")
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Sample:
    """One operator at one size: what a call moves and computes, and what it takes.

    Attributes:
        rows: of the matrix product, or tokens. num_bytes, flops: of one call, as the operator table
            counts them. spread: half of p10 to p90 over the median. pace: of the machine then.
        beside: the format of the weights in the model that it ran in.
    """

    operator: str
    kind: Kind
    format: str
    rows: int
    num_bytes: float
    flops: float
    seconds: float
    spread: float
    pace: Pace
    beside: str


def at_pace(sample: Sample, now: Pace) -> Sample:
    """What the sample would have been at another pace, as far as that is followed."""
    read_bytes = sample.num_bytes if sample.kind in READING_KINDS else 0.0
    seconds = now.towards(sample.pace).seconds_at(now, sample.seconds, read_bytes)
    return replace(sample, seconds=seconds, pace=now)


def settled(samples: Sequence[Sample]) -> list[Sample]:
    """Samples of one turn at the pace to expect from the turn's own and from that beside each.

    Raises:
        ValueError: there are none.
    """
    turn = Pace.middle([sample.pace for sample in samples])
    return [replace(sample, pace=turn.expected(sample.pace)) for sample in samples]


def merged(samples: Sequence[Sample]) -> list[Sample]:
    """One sample for each operator and size: the median of those taken in different rounds.

    A moment in which the machine was slower, or faster, is then left out where there are three rounds.
    """
    groups = _grouped(samples, lambda s: (s.operator, s.format, s.rows, s.num_bytes, s.flops, s.beside))
    return [
        replace(
            group[0],
            seconds=float(np.median([sample.seconds for sample in group])),
            spread=float(np.median([sample.spread for sample in group])),
        )
        for group in groups.values()
    ]


def fit_rates(samples: Sequence[Sample], kernels: dict[str, str]) -> tuple[MeasuredRate, ...]:
    """Fit every rate that a machine needs.

    Every operator has a rate of its own by format: one calls the library once and another three times,
    and a kernel reads short rows and long rows at different speed. Beside them stands one rate for each
    kind, for operators that were not sampled: by format for matrix products, for every format elsewhere.
    The head comes in one size and every other product in two, which are close together, so the fixed cost of
    products is fitted to all of them. All operators also have a rate of
    their own beside each format of weights: large matrices push small operators out of the caches.

    Args:
        samples: of all operators.
        kernels: format -> what computes its matrix products.
    """
    linears = [sample for sample in samples if sample.kind == "linear" and sample.operator != HEAD]
    others = [sample for sample in samples if sample.kind != "linear"]
    products = {
        name: replace(_fit(group), format=name, kernel=kernels.get(name, ""))
        for name, group in _grouped(linears, lambda s: s.format).items()
    }
    by_kind = [
        replace(_fit(group), format=ANY_FORMAT) for group in _grouped(others, lambda s: s.kind).values()
    ]
    own = [
        replace(row, beside=weights)
        for weights, group in _grouped(samples, lambda s: s.beside).items()
        for row in _by_operator(group, products)
    ]
    by_operator = _grouped(own, lambda row: (row.operator, row.format)).values()
    return (*products.values(), *by_kind, *(_middle(rows) for rows in by_operator), *own)


def _middle(rows: Sequence[MeasuredRate]) -> MeasuredRate:
    """One rate for every format of weights: that with the middle fixed cost, the lower of two."""
    ordered = sorted(rows, key=lambda row: row.rate.fixed_s)
    return replace(ordered[(len(ordered) - 1) // 2], beside="")


def _by_operator(samples: Sequence[Sample], products: dict[str, MeasuredRate]) -> list[MeasuredRate]:
    rows = []
    for (operator, name), group in _grouped(samples, lambda s: (s.operator, s.format)).items():
        shared_s = products[name].rate.fixed_s if name in products else None
        if operator == HEAD:
            shared_s = shared_s or 0.0  # it comes in one size, which tells no fixed cost
        fitted = _fit(group, shared_s if group[0].kind == "linear" else None)
        rows.append(replace(fitted, format=name, operator=operator))
    return rows


def _fit(samples: Sequence[Sample], known_s: float | None = None) -> MeasuredRate:
    """A whole rate; ``known_s`` is its fixed cost where more samples than these tell it."""
    fewest = min(sample.rows for sample in samples)
    computes = any(sample.flops > 0 for sample in samples)
    few = [sample for sample in samples if sample.rows == fewest]
    fixed_s, bytes_per_s = affine(few) if known_s is None else (known_s, _slope(few, known_s))
    by_rows = sorted(_grouped(samples, lambda s: s.rows).items())
    if not computes:
        fixed_s = max(fixed_s, _LEAST_FIXED * min(sample.seconds for sample in few))
        return _rate(samples, _moving(by_rows, fixed_s, bytes_per_s))
    flops_per_s = tuple(_flops_per_s(group, fixed_s, bytes_per_s) for _, group in by_rows)
    return _rate(samples, Rate(fixed_s, bytes_per_s, tuple(float(rows) for rows, _ in by_rows), flops_per_s))


def _slope(samples: Sequence[Sample], fixed_s: float) -> float:
    """Bytes a second beside a fixed cost; large calls weigh most."""
    left_s = sum(max(s.seconds - fixed_s, _LEAST_VARIABLE * s.seconds) for s in samples)
    return sum(sample.num_bytes for sample in samples) / left_s


def _moving(by_rows: Sequence[tuple[int, Sequence[Sample]]], fixed_s: float, bytes_per_s: float) -> Rate:
    """Of what only moves bytes: on one row as fitted, on more rows what the fixed cost leaves of them.

    By rows, for a few of them are worked on by one program and many by another.
    """
    return Rate(
        fixed_s,
        bytes_per_s,
        tuple(float(rows) for rows, _ in by_rows),
        (UNLIMITED,) * len(by_rows),
        (bytes_per_s, *(_slope(group, fixed_s) for _, group in by_rows[1:])),
    )


def _rate(samples: Sequence[Sample], rate: Rate) -> MeasuredRate:
    spread = float(np.median([sample.spread for sample in samples]))
    return MeasuredRate(samples[0].kind, "", rate, spread)


def affine(samples: Sequence[Sample]) -> tuple[float, float]:
    """Fit ``seconds = fixed_s + bytes / bytes_per_s`` with neither part negative.

    Least squares of the relative error. Samples of one size cannot tell the two apart: all of their
    time is then the fixed cost.
    """
    seconds = np.array([sample.seconds for sample in samples])
    size = np.array([sample.num_bytes for sample in samples])
    design = np.stack([np.ones_like(size), size], axis=1) / seconds[:, None]
    if np.ptp(size) <= 0.01 * size.max():
        return float(np.median(seconds)), UNLIMITED
    (fixed, per_byte), *_ = np.linalg.lstsq(design, np.ones_like(seconds), rcond=None)
    if fixed < 0:
        fixed, per_byte = 0.0, _only(design[:, 1])
    elif per_byte <= 0:
        fixed, per_byte = _only(design[:, 0]), 1.0 / UNLIMITED
    return float(fixed), min(1.0 / float(per_byte), UNLIMITED)


def _only(column: NDArray[np.float64]) -> float:
    """Least squares with one column: the factor that brings it closest to ones."""
    return float(column.sum() / (column @ column))


def _flops_per_s(samples: Sequence[Sample], fixed_s: float, bytes_per_s: float) -> float:
    """FLOP/s that explain what the fixed cost leaves, over all samples with one number of rows.

    On one row memory is what limits, and the rate that would take just as long is given: then the
    larger of the two times is either.
    """
    flops = sum(sample.flops for sample in samples)
    if all(sample.rows == 1 for sample in samples):
        return max(flops / sum(sample.num_bytes for sample in samples) * bytes_per_s, 1.0)
    left_s = sum(max(s.seconds - fixed_s, _LEAST_VARIABLE * s.seconds) for s in samples)
    return max(flops / left_s, 1.0)


def _grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def scaled(rates: Sequence[MeasuredRate], factor: float) -> tuple[MeasuredRate, ...]:
    """The same rates with fixed costs times ``factor``."""
    return tuple(replace(row, rate=replace(row.rate, fixed_s=row.rate.fixed_s * factor)) for row in rates)
