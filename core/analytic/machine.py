"""A machine, whatever its numbers came from: a data sheet, or a calibration of this computer.

``latency.step_time(operators, machine)`` does not know which of the two it got.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.analytic.collectives import Collective, LinkSpeed
from core.analytic.table import Kind
from core.catalog.accelerator import Link
from core.errors import ScenarioError

#: Chips of the usual server.
NODE_CHIPS: Final = 8


@dataclass(frozen=True, slots=True)
class Rate:
    """What one kind of operator reaches in one format.

    The time of an operator that moves ``b`` bytes and does ``f`` FLOPs on ``m`` rows is::

        fixed_s + max(b / bytes_per_s(m), f / flops_per_s(m))

    Attributes:
        fixed_s: cost of one call, whatever its size.
        bytes_per_s: bytes moved per second when nothing else limits.
        rows, flops_per_s: FLOP/s reached at each number of rows; between the given points the
            logarithm is interpolated, outside them the nearest point holds. Kernels for one row
            and for many differ, so one number would be wrong at one end.
        rows_bytes_per_s: bytes moved per second at each number of rows, in the same way; empty where it is
            ``bytes_per_s`` for all of them.
    """

    fixed_s: float
    bytes_per_s: float
    rows: tuple[float, ...]
    flops_per_s: tuple[float, ...]
    rows_bytes_per_s: tuple[float, ...] = ()

    def flops_at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """FLOP/s reached at a number of rows (of the matrix product)."""
        return self._at(rows, self.flops_per_s)

    def bytes_at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bytes moved per second at a number of rows."""
        if not self.rows_bytes_per_s:
            return np.full_like(rows, self.bytes_per_s)
        return self._at(rows, self.rows_bytes_per_s)

    def slower(self, factor: float) -> Rate:
        """The same where everything takes ``factor`` times as long.

        >>> Rate(1e-6, 8e9, (1.0,), (4e9,)).slower(2.0)
        Rate(fixed_s=2e-06, bytes_per_s=4000000000.0, rows=(1.0,), flops_per_s=(2000000000.0,), \
rows_bytes_per_s=())
        """
        return Rate(
            self.fixed_s * factor,
            self.bytes_per_s / factor,
            self.rows,
            tuple(each / factor for each in self.flops_per_s),
            tuple(each / factor for each in self.rows_bytes_per_s),
        )

    def _at(self, rows: NDArray[np.float64], values: tuple[float, ...]) -> NDArray[np.float64]:
        if len(values) == 1:
            return np.full_like(rows, values[0])
        known = np.log(np.asarray(self.rows))
        return np.exp(np.interp(np.log(np.maximum(rows, 1.0)), known, np.log(values)))


@dataclass(frozen=True, slots=True)
class Machine:
    """What the arithmetic needs to know of a machine.

    Attributes:
        id, name: as on the page; the id is an accelerator's, or "this-computer".
        origin: where the numbers come from.
        capacity_bytes: memory that software sees, on one chip; None where it is unknown.
        bandwidth_bytes_per_s: the ceiling: a data sheet's peak, or the best read measured here.
        peak_flops_per_s: dense peak by compute format; an absent format is not supported.
        rates: what each kind of operator reaches, by (kind, number format); the format "*" serves
            every format that has no entry of its own.
        operator_rates: what a single operator reaches, by (operator name, number format), where that
            is known better than its kind's rate. Two operators of one kind may call the library once
            or three times, and a small model's time is made of such calls.
        step_fixed_s: cost of one forward pass besides its operators.
        link: the link to its neighbours, None where it has none.
        link_share: what collectives reach of the link's one-way bandwidth.
        collective_fixed_s: cost of one collective, whatever its size, besides the link's own latency.
        overhead_bytes: memory that the driver and the framework keep for themselves.
        measured_at: ISO time of the calibration, empty for a data sheet.
        notes: sentences that belong beside any number made with it.
        kind: class of the chip, as its data sheet's; empty for a measured machine.
        announced: nobody outside the vendor has measured such a chip.
        network: what joins more chips than the link does, for each chip; None where it is not given.
    """

    id: str
    name: str
    origin: Literal["data sheet", "measured"]
    capacity_bytes: float | None
    bandwidth_bytes_per_s: float
    peak_flops_per_s: Mapping[str, float]
    rates: Mapping[tuple[Kind, str], Rate]
    step_fixed_s: float
    link: Link | None = None
    overhead_bytes: float = 0.0
    measured_at: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)
    operator_rates: Mapping[tuple[str, str], Rate] = field(default_factory=dict)
    link_share: float = 1.0
    collective_fixed_s: float = 0.0
    kind: str = ""
    announced: bool = False
    network: Link | None = None

    @property
    def joined_chips(self) -> int:
        """Chips that its link joins at most; those of a usual server where nobody says."""
        return NODE_CHIPS if self.link is None or self.link.chips is None else self.link.chips

    def link_for(self, collective: Collective) -> LinkSpeed:
        """What carries a collective: the link among the chips that it joins, the network beyond them.

        An unknown latency counts as 0, and a network that is not given as the link: both give floors.

        Raises:
            ScenarioError: no link is known.
        """
        within = max(collective.spread, collective.ranks) <= self.joined_chips
        link = self.link if within or self.network is None else self.network
        if link is None:
            raise ScenarioError(
                f"Chips that share a model need a link between them; none is known of {self.name}. "
                "Choose a chip with a link, or a plan on one chip."
            )
        return LinkSpeed(
            self.link_share * link.bandwidth_bytes_per_s, link.latency_s or 0.0, self.collective_fixed_s
        )

    def slower(self, factor: float) -> Machine:
        """The same machine where passes take ``factor`` times as long; ceilings and the link stay."""
        if factor == 1:
            return self
        return replace(
            self,
            rates={key: rate.slower(factor) for key, rate in self.rates.items()},
            operator_rates={key: rate.slower(factor) for key, rate in self.operator_rates.items()},
            step_fixed_s=self.step_fixed_s * factor,
        )

    def knows(self, kind: Kind, format: str) -> bool:
        """Whether it has a rate for such operators."""
        return (kind, format) in self.rates or (kind, "*") in self.rates

    def rate(self, kind: Kind, format: str, operator: str = "") -> Rate:
        """The rate of an operator: its own entry, else its kind's in the format, else in every format.

        Raises:
            KeyError: the machine has none; a machine must be built with a "*" entry per kind.
        """
        own = self.operator_rates.get((operator, format), self.rates.get((kind, format)))
        return own if own is not None else self.rates[(kind, "*")]
