"""Many machines as arrays, so that one operator table is timed on all of them at once.

``latency.step_time`` walks the rows of a table for one machine. Here each row is one array over machines
and sweep; ``tests/analytic/search`` holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.analytic.collectives import Collective, LinkSpeed
from core.analytic.machine import Machine, Rate
from core.analytic.table import Kind, Operators
from core.errors import ScenarioError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """One kind and format on all machines; a machine without a rate has none of a number."""

    fixed_s: Array
    bytes_per_s: Array
    grid: Array
    log_flops_per_s: Array

    def flops_at(self, rows: Array) -> Array:
        """FLOP/s at each number of rows: ``[machines, *sweep]``, interpolated as ``Rate`` does."""
        if len(self.grid) == 1:
            curve = np.exp(self.log_flops_per_s[:, 0])
            return np.asarray(curve.reshape(-1, *([1] * rows.ndim)))
        place = np.interp(np.log(np.maximum(rows, 1.0)), self.grid, np.arange(len(self.grid)))
        low = np.minimum(place.astype(np.int64), len(self.grid) - 2)
        share = place - low
        curve = self.log_flops_per_s
        return np.asarray(np.exp((1 - share) * curve[:, low] + share * curve[:, low + 1]))


@dataclass(frozen=True)
class ChipArray:
    """Machines side by side.

    Attributes:
        machines: in order; everything below has one entry for each.
    """

    machines: tuple[Machine, ...]

    @cached_property
    def capacity_bytes(self) -> Array:
        """Memory that software sees; none of a number where it is unknown."""
        return np.array([np.nan if m.capacity_bytes is None else m.capacity_bytes for m in self.machines])

    @cached_property
    def overhead_bytes(self) -> Array:
        """What the driver and the framework keep."""
        return np.array([machine.overhead_bytes for machine in self.machines])

    @cached_property
    def _known(self) -> dict[tuple[Kind, str], _Rates]:
        return {}

    @cached_property
    def _known_links(self) -> dict[Collective, tuple[Array, Array, Array]]:
        return {}

    def _links(self, collective: Collective) -> tuple[Array, Array, Array]:
        """Bandwidth, latency and fixed cost of a collective; none of a number without a link."""
        if collective not in self._known_links:
            speeds = [_link(machine, collective) for machine in self.machines]
            self._known_links[collective] = (
                np.array([np.nan if s is None else s.bytes_per_s for s in speeds]),
                np.array([0.0 if s is None else s.latency_s for s in speeds]),
                np.array([0.0 if s is None else s.fixed_s for s in speeds]),
            )
        return self._known_links[collective]

    def step_s(self, table: Operators) -> Array:
        """Seconds of one pass on every machine: ``[machines, *sweep]``.

        None of a number where a machine cannot compute in a format of the table, or has no link.
        """
        shape = (-1, *([1] * (table.flops.ndim - 1)))
        total = np.array([machine.step_fixed_s for machine in self.machines]).reshape(shape)
        total = np.broadcast_to(total, (len(self.machines), *table.flops.shape[1:])).copy()
        moved = table.streamed_bytes
        for row, collective in enumerate(table.collectives):
            if collective is not None:
                total += self._exchange_s(table, row, collective, shape)
                continue
            rates = self._rates(table.kinds[row], table.formats[row])
            memory_s = moved[row] / rates.bytes_per_s.reshape(shape)
            compute_s = table.flops[row] / rates.flops_at(table.tokens[row])
            total += table.repeats[row] * rates.fixed_s.reshape(shape) + np.maximum(memory_s, compute_s)
        return total

    def _exchange_s(
        self, table: Operators, row: int, collective: Collective, shape: tuple[int, ...]
    ) -> Array:
        """The better of a ring and one shot, as ``collectives.fastest_s``."""
        bandwidth, latency, fixed = (values.reshape(shape) for values in self._links(collective))
        repeats, factor = table.repeats[row], collective.wire_factor()
        sent = table.link_bytes[row] / repeats
        shot_bytes = sent * (collective.wire_factor("one_shot") / factor if factor else 0.0)
        ring_s = collective.steps() * latency + sent / bandwidth
        shot_s = collective.steps("one_shot") * latency + shot_bytes / bandwidth
        return np.asarray(repeats * (fixed + np.minimum(ring_s, shot_s)))

    def _rates(self, kind: Kind, format: str) -> _Rates:
        key = (kind, format)
        if key not in self._known:
            self._known[key] = _stack([_rate(machine, kind, format) for machine in self.machines])
        return self._known[key]


def _link(machine: Machine, collective: Collective) -> LinkSpeed | None:
    try:
        return machine.link_for(collective)
    except ScenarioError:
        return None


def _rate(machine: Machine, kind: Kind, format: str) -> Rate | None:
    try:
        return machine.rate(kind, format)
    except KeyError:
        return None


def _stack(rates: Sequence[Rate | None]) -> _Rates:
    """Rates on one grid of rows: all points at which any of them is given."""
    rows = sorted({point for rate in rates if rate is not None for point in rate.rows}) or [1.0]
    grid = np.array(rows)

    def column(name: str) -> Array:
        return np.array([np.nan if rate is None else getattr(rate, name) for rate in rates])

    curves = [np.full(len(grid), np.nan) if rate is None else rate.flops_at(grid) for rate in rates]
    return _Rates(column("fixed_s"), column("bytes_per_s"), np.log(grid), np.log(np.array(curves)))
