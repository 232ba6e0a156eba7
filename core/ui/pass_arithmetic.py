"""The time of forward passes as a worked number: every operator's bytes, FLOPs and rates, and their sum.

The formula is that of ``core.analytic.latency``; here it is only written down with its inputs. The planner
and the lab show the same number, the one from data sheets, the other from a calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.analytic.latency import operator_times
from core.analytic.machine import Machine
from core.analytic.table import Operators
from core.ui.words import operator_name
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_count, format_gb, format_seconds, format_si

FORMULA: Final = "pass cost + Σ operators [ calls × call cost + max( bytes / byte rate, FLOPs / FLOP rate ) ]"
_TABLE: Final = "operator table: the model's shape"
_GROUPS: Final = {
    "linear": "matrices",
    "lookup": "matrices",
    "attention": "attention",
    "kv_write": "attention",
    "recurrence": "attention",
    "collective": "communication",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a machine's numbers come from: in words, and an address where there is one."""

    words: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Passes:
    """Forward passes on a machine.

    Attributes:
        what: the passes, in words. tables: the operators of each; one value each, no sweep.
        machine: where they run. rates, costs: where its rates and its fixed costs come from.
    """

    what: str
    tables: Sequence[Operators]
    machine: Machine
    rates: Origin
    costs: Origin

    @property
    def fixed_s(self) -> float:
        """What the passes cost besides their operators."""
        return self.machine.step_fixed_s * len(self.tables)

    def seconds_by_group(self) -> dict[str, float]:
        """The operators' times, summed by what they are."""
        sums: dict[str, float] = {}
        for table in self.tables:
            for kind, seconds in zip(table.kinds, operator_times(table, self.machine), strict=True):
                group = _GROUPS.get(kind, "the rest")
                sums[group] = sums.get(group, 0.0) + float(seconds)
        return sums


def pass_number(name: str, passes: Passes, note: str) -> WorkedNumber:
    """Work out the time of passes.

    Args:
        name: the quantity ("TPOT").
        passes: what is timed.
        note: what the number leaves out.

    Raises:
        FormatError: the machine cannot compute in a format of a table.
    """
    sums = passes.seconds_by_group()
    terms = [f"{format_seconds(passes.fixed_s)} pass"]
    terms += [f"{format_seconds(seconds)} {group}" for group, seconds in sums.items()]
    return WorkedNumber(
        name=name,
        formula=f"{name} = {FORMULA}",
        substituted=" + ".join(terms),
        result=f"{format_seconds(passes.fixed_s + sum(sums.values()))} for {passes.what}",
        inputs=_inputs(passes),
        python=program(f"{name}: {passes.what}", passes),
        note=note,
    )


def _inputs(passes: Passes) -> tuple[Input, ...]:
    tables, machine, rates, costs = passes.tables, passes.machine, passes.rates, passes.costs
    first, row = tables[0], _heaviest(tables[0])
    name, rows = operator_name(first.names[row]), float(first.tokens[row])
    rate = machine.rate(first.kinds[row], first.formats[row], first.names[row])
    moved = sum(float(table.streamed_bytes.sum()) for table in tables)
    flops = sum(float(table.total("flops")) for table in tables)
    flop_rate, byte_rate = (float(at(np.asarray(rows))) for at in (rate.flops_at, rate.bytes_at))
    return (
        _fact("pass cost", "cost of a pass besides its operators", format_seconds(passes.fixed_s), costs),
        _fact("call cost", f"cost of calling an operator once; {name}", format_seconds(rate.fixed_s), costs),
        Input("bytes", "weights, cache and activations moved", format_gb(moved), _TABLE),
        Input("FLOPs", "multiplies and adds", f"{format_si(flops)}FLOP", _TABLE),
        _fact("byte rate", _reached(passes, name), f"{format_gb(byte_rate)}/s", rates),
        _fact(
            "FLOP rate",
            f"what it reaches with {format_count(rows, 'row')}",
            f"{format_si(flop_rate)}FLOP/s",
            rates,
        ),
    )


def _heaviest(table: Operators) -> int:
    """The matrix that moves most bytes; its rates stand for all, the program lists every operator's."""
    matrices = [row for row, kind in enumerate(table.kinds) if kind == "linear"]
    return max(matrices, key=lambda row: float(table.streamed_bytes[row]), default=0)


def _reached(passes: Passes, name: str) -> str:
    ceiling = format_gb(passes.machine.bandwidth_bytes_per_s)
    return f"what {name}, the largest, reaches of {ceiling}/s"


def _fact(symbol: str, meaning: str, value: str, origin: Origin) -> Input:
    return Input(symbol, meaning, value, origin.words, origin.url)


def program(title: str, passes: Passes) -> str:
    """Python that prints the milliseconds of the passes, needing nothing else."""
    rows = [
        f"    {program_row(table, row, passes.machine)},"
        for table in passes.tables
        for row in range(len(table.names))
    ]
    return "\n".join(
        (
            f"# {' '.join(title.split())}",
            f"# on {' '.join(passes.machine.name.split())}",
            "# name, calls, seconds a call, bytes, bytes/s, FLOPs, FLOP/s",
            "operators = [",
            *rows,
            "]",
            f"pass_fixed_s = {passes.machine.step_fixed_s:.9g}",
            f"passes = {len(passes.tables)}",
            "pass_s = passes * pass_fixed_s + sum(",
            "    calls * call_s + max(moved / bytes_per_s, flops / flops_per_s)",
            "    for _, calls, call_s, moved, bytes_per_s, flops, flops_per_s in operators",
            ")",
            'print(f"{pass_s * 1000:.3g} ms")',
        )
    )


def program_row(table: Operators, row: int, machine: Machine) -> str:
    """One operator as a Python tuple: name, calls, seconds a call, bytes, bytes/s, FLOPs, FLOP/s."""
    name = table.names[row]
    rate = machine.rate(table.kinds[row], table.formats[row], name)
    values = (
        float(table.repeats[row]),
        rate.fixed_s,
        float(table.streamed_bytes[row]),
        float(rate.bytes_at(np.asarray(table.tokens[row]))),
        float(table.flops[row]),
        float(rate.flops_at(np.asarray(table.tokens[row]))),
    )
    return f"({name!r}, {', '.join(f'{value:.9g}' for value in values)})"
