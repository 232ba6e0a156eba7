"""The time of a forward pass as a worked number: every operator's bytes, FLOPs and rates, and their sum.

The formula is that of ``core.analytic.latency``; here it is only written down with its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from core.analytic.latency import operator_times
from core.analytic.machine import Machine
from core.analytic.table import Operators
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_gb, format_seconds, format_si

FORMULA: Final = "pass cost + Σ operators [ calls × call cost + max( bytes / byte rate, FLOPs / FLOP rate ) ]"
_GROUPS: Final = {
    "linear": "matrices",
    "lookup": "matrices",
    "attention": "attention",
    "kv_write": "attention",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a machine's numbers come from: in words, and an address where there is one."""

    words: str
    url: str = ""


def pass_number(
    name: str, what: str, table: Operators, machine: Machine, *, origin: Origin, note: str
) -> WorkedNumber:
    """Work out the time of one pass.

    Args:
        name: the quantity ("TPOT").
        what: the pass, in words.
        table: its operators; one value each, no sweep.
        machine: where it runs.
        origin: where the machine's numbers come from.
        note: what the number leaves out.

    Raises:
        FormatError: the machine cannot compute in a format of the table.
    """
    sums = _by_group(table, machine)
    fixed = machine.step_fixed_s
    terms = [f"{format_seconds(fixed)} pass", *(f"{format_seconds(s)} {group}" for group, s in sums.items())]
    return WorkedNumber(
        name=name,
        formula=f"{name} = {FORMULA}",
        substituted=" + ".join(terms),
        result=f"{format_seconds(fixed + sum(sums.values()))} for {what}",
        inputs=_inputs(table, machine, origin),
        python=program(f"{name}: {what}", table, machine),
        note=note,
    )


def _inputs(table: Operators, machine: Machine, origin: Origin) -> tuple[Input, ...]:
    widest = machine.rate("linear", table.formats[table.index("gate_up")], "gate_up")
    rows = float(table.tokens[table.index("gate_up")])
    flop_rate = float(widest.flops_at(np.asarray(rows)))
    priors = "fitted to published measurements"
    return (
        Input(
            "pass cost",
            "cost of one pass besides its operators",
            format_seconds(machine.step_fixed_s),
            priors,
        ),
        Input("call cost", "cost of calling one operator once", format_seconds(widest.fixed_s), priors),
        _total("bytes", "weights, cache and activations moved", format_gb(float(table.streamed_bytes.sum()))),
        _total("FLOPs", "multiplies and adds", f"{format_si(float(table.total('flops')))}FLOP"),
        Input(
            "byte rate",
            f"what the MLP's matrices reach of {format_gb(machine.bandwidth_bytes_per_s)}/s",
            f"{format_gb(widest.bytes_per_s)}/s",
            origin.words,
            origin.url,
        ),
        Input(
            "FLOP rate",
            f"what they reach with {rows:,.0f} rows",
            f"{format_si(flop_rate)}FLOP/s",
            origin.words,
            origin.url,
        ),
    )


def program(title: str, table: Operators, machine: Machine) -> str:
    """Python that prints the seconds of one pass, needing nothing else."""
    return "\n".join(
        (
            f"# {' '.join(title.split())}",
            f"# on {' '.join(machine.name.split())}",
            "# name, calls, seconds a call, bytes, bytes/s, FLOPs, FLOP/s",
            "operators = [",
            *_program_rows(table, machine),
            "]",
            f"pass_fixed_s = {machine.step_fixed_s:.9g}",
            "pass_s = pass_fixed_s + sum(",
            "    calls * call_s + max(moved / bytes_per_s, flops / flops_per_s)",
            "    for _, calls, call_s, moved, bytes_per_s, flops, flops_per_s in operators",
            ")",
            'print(f"{pass_s * 1000:.3g} ms")',
        )
    )


def _total(symbol: str, meaning: str, value: str) -> Input:
    return Input(symbol, meaning, value, "operator table: the model's shape")


def _by_group(table: Operators, machine: Machine) -> dict[str, float]:
    sums: dict[str, float] = {}
    for kind, seconds in zip(table.kinds, operator_times(table, machine), strict=True):
        group = _GROUPS.get(kind, "the rest")
        sums[group] = sums.get(group, 0.0) + float(seconds)
    return sums


def _program_rows(table: Operators, machine: Machine) -> list[str]:
    rows = []
    for row, name in enumerate(table.names):
        rate = machine.rate(table.kinds[row], table.formats[row], name)
        values = (
            float(table.repeats[row]),
            rate.fixed_s,
            float(table.streamed_bytes[row]),
            rate.bytes_per_s,
            float(table.flops[row]),
            float(rate.flops_at(np.asarray(table.tokens[row]))),
        )
        rows.append(f"    ({name!r}, {', '.join(f'{value:.9g}' for value in values)}),")
    return rows
