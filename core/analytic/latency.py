"""How long a forward pass takes, and what it waits for.

An operator takes its fixed cost plus the longer of moving its bytes and doing its FLOPs, at the
rates of the machine for its kind, format and number of rows; a collective takes what its link needs;
a pass is the sum of its operators and one fixed cost. The maximum is taken per operator and then
summed: one maximum over the whole model would let the compute of one operator hide behind the
memory traffic of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.collectives import Collective, LinkSpeed, fastest_s
from core.analytic.machine import Machine, Rate
from core.analytic.table import Operators
from core.catalog.formats import STORAGE_FORMATS
from core.errors import FormatError

#: The limits, in the order in which a tie is resolved.
LIMITS: Final = ("memory", "compute", "overhead", "link")


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What each operator asks of each limit, in seconds; all of the shape ``[rows, *sweep]``.

    Attributes:
        memory_s: bytes moved / bytes per second. compute_s: FLOPs / FLOP per second.
        fixed_s: calls times their fixed cost. link_s: what collectives take, their latency included.
    """

    memory_s: NDArray[np.float64]
    compute_s: NDArray[np.float64]
    fixed_s: NDArray[np.float64]
    link_s: NDArray[np.float64]

    @property
    def times_s(self) -> NDArray[np.float64]:
        """What each operator takes: bytes and FLOPs at once, the rest beside them."""
        return np.asarray(self.fixed_s + np.maximum(self.memory_s, self.compute_s) + self.link_s)


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Which limit a pass waits for, and by how much; of the sweep's shape.

    Attributes:
        memory_s, compute_s, overhead_s, link_s: what the pass asks of each limit, over all operators.
        time_s: what the pass takes, as ``step_time`` gives it.
    """

    memory_s: NDArray[np.float64]
    compute_s: NDArray[np.float64]
    overhead_s: NDArray[np.float64]
    link_s: NDArray[np.float64]
    time_s: NDArray[np.float64]

    @property
    def limit(self) -> NDArray[np.str_]:
        """The limit that asks for most time: "memory", "compute", "overhead" or "link"."""
        return np.asarray(np.array(LIMITS)[self._asked().argmax(axis=0)])

    @property
    def factor(self) -> NDArray[np.float64]:
        """How many times as long it asks for as the next limit does; infinite where nothing else asks."""
        *_, second, first = np.sort(self._asked(), axis=0)
        return np.asarray(np.divide(first, second, out=np.full_like(first, np.inf), where=second > 0))

    def _asked(self) -> NDArray[np.float64]:
        return np.stack([self.memory_s, self.compute_s, self.overhead_s, self.link_s])


def demand(table: Operators, machine: Machine) -> Demand:
    """What each operator asks of the machine's memory, its arithmetic, its link, and its fixed cost.

    Raises:
        FormatError: the machine cannot compute in a format of the table.
        ScenarioError: chips exchange something, and the machine has no link.
    """
    shape = table.flops.shape
    memory, compute, fixed, link = np.zeros((4, *shape))
    moved, sweep = table.streamed_bytes, (1,) * (len(shape) - 1)
    for rate, rows in _rows_by_rate(table, machine).items():
        memory[rows] = moved[rows] / rate.bytes_at(table.tokens[rows])
        compute[rows] = table.flops[rows] / rate.flops_at(table.tokens[rows])
        fixed[rows] = table.repeats[rows].reshape(-1, *sweep) * rate.fixed_s
    for row, collective in enumerate(table.collectives):
        if collective is not None:
            link[row] = _exchange_s(table, row, collective, machine.link_for(collective))
    return Demand(memory, compute, fixed, link)


def _rows_by_rate(table: Operators, machine: Machine) -> dict[Rate, list[int]]:
    """The rows of operators that run at one rate; collectives have none."""
    found: dict[Rate, list[int]] = {}
    for row, collective in enumerate(table.collectives):
        if collective is None:
            found.setdefault(_rate(table, row, machine), []).append(row)
    return found


def _exchange_s(table: Operators, row: int, collective: Collective, speed: LinkSpeed) -> NDArray[np.float64]:
    repeats, factor = table.repeats[row], collective.wire_factor()
    message = table.link_bytes[row] / (repeats * factor) if factor else np.zeros_like(table.link_bytes[row])
    return np.asarray(repeats * fastest_s(collective, message, speed))


def _rate(table: Operators, row: int, machine: Machine) -> Rate:
    kind, format_id = table.kinds[row], table.formats[row]
    try:
        return machine.rate(kind, format_id, table.names[row])
    except KeyError:
        raise FormatError(_no_rate(machine, kind, format_id)) from None


def _no_rate(machine: Machine, kind: str, format_id: str) -> str:
    needed = STORAGE_FORMATS[format_id].compute
    if needed in machine.peak_flops_per_s:
        return f"{machine.name} was not measured with {kind} operators in {format_id}. Calibrate it again."
    return unsupported_sentence(format_id, machine)


def unsupported_sentence(format_id: str, machine: Machine) -> str:
    """That a chip has no arithmetic for a format, and which usual or equally fine formats it has."""
    asked = STORAGE_FORMATS[format_id]
    needed = asked.compute
    why = "" if needed == format_id else f", in which {format_id} is multiplied"
    fine = [
        record.id
        for record in STORAGE_FORMATS.values()
        if record.compute in machine.peak_flops_per_s
        and set(record.uses) & set(asked.uses)
        and (record.engine or record.payload_bits == asked.payload_bits)
    ]
    choice = f"Choose one of {', '.join(fine)}." if fine else "Choose another chip."
    return f"{machine.name} has no {needed} arithmetic{why}. {choice}"


def operator_times(table: Operators, machine: Machine) -> NDArray[np.float64]:
    """Seconds of each operator, all its repeats together: ``[rows, *sweep]``.

    ``repeats * fixed_s + max(bytes / bytes_per_s(rows), FLOPs / FLOP_per_s(rows))``, and for a collective the
    time of ``collectives.fastest_s``. Ignored: overlap of neighbouring operators, and the smooth
    passage between the two limits that kernels show.

    Raises:
        FormatError: the machine cannot compute in a format of the table.
    """
    return demand(table, machine).times_s


def step_time(table: Operators, machine: Machine) -> NDArray[np.float64]:
    """Seconds of one forward pass: the sum over its operators, and the fixed cost of a pass.

    Raises:
        FormatError: the machine cannot compute in a format of the table.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.analytic.operators import operators
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> shape, chip = model("llama-3.1-8b"), machine_from(accelerator("h100-sxm-80gb"))
    >>> step = operators(shape, batch=1, new_tokens=1, context=8192, weights="bf16", kv="bf16")
    >>> 0.0048 < float(step_time(step, chip)) < 0.0100   # its floor is 4.80 ms
    True
    """
    return np.asarray(machine.step_fixed_s + operator_times(table, machine).sum(axis=0))


def bound(table: Operators, machine: Machine) -> Bound:
    """Which limit a pass waits for, by how much, and how long the pass takes.

    Raises:
        FormatError: the machine cannot compute in a format of the table.
    """
    asked = demand(table, machine)
    return Bound(
        memory_s=np.asarray(asked.memory_s.sum(axis=0)),
        compute_s=np.asarray(asked.compute_s.sum(axis=0)),
        overhead_s=np.asarray(machine.step_fixed_s + asked.fixed_s.sum(axis=0)),
        link_s=np.asarray(asked.link_s.sum(axis=0)),
        time_s=np.asarray(machine.step_fixed_s + asked.times_s.sum(axis=0)),
    )
