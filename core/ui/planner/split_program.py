"""Python that prints the time of a pass on the chips of a split plan, needing nothing else."""

from __future__ import annotations

from core.analytic.collectives import ALGORITHMS, Collective
from core.analytic.deployment import PassOnChips, Phase
from core.analytic.machine import Machine
from core.analytic.table import Operators
from core.ui.pass_arithmetic import program_row

_HEAD = """\
# {title}
# on {machine}, one chip of each stage with one micro-batch; stages that are alike stand there once
# operators: name, calls, seconds a call, bytes, bytes/s, FLOPs, FLOP/s
# collectives: name, calls, start, latency, bytes/s, and for each way to do it its steps and the bytes sent"""

_TAIL = """\
def stage_s(operators, collectives):
    one_chip_s = sum(
        calls * call_s + max(moved / bytes_per_s, flops / flops_per_s)
        for _, calls, call_s, moved, bytes_per_s, flops, flops_per_s in operators
    )
    collectives_s = sum(
        calls * min(start_s + steps * latency_s + sent / bytes_per_s for steps, sent in ways)
        for _, calls, start_s, latency_s, bytes_per_s, ways in collectives
    )
    return pass_fixed_s + one_chip_s + collectives_s

each = [(count, stage_s(operators, collectives)) for count, operators, collectives in stages]
all_stages_s = sum(count * seconds for count, seconds in each)
slowest_s = max(seconds for _, seconds in each)"""


def program(title: str, made: PassOnChips, machine: Machine, phase: Phase) -> str:
    """Write the program.

    Args:
        title: its first line.
        made: the pass.
        machine: one of its chips.
        phase: which pass it is, since a prefill fills a pipeline and decode goes round.
    """
    whole = "all_stages_s + (micro_batches - 1) * slowest_s"
    if phase == "decode":
        whole = "max(all_stages_s, micro_batches * slowest_s)"
    return "\n".join(
        (
            _HEAD.format(title=" ".join(title.split()), machine=" ".join(machine.name.split())),
            "stages = [",
            *(line for count, table in _alike(made.tables) for line in _stage_lines(count, table, machine)),
            "]",
            f"pass_fixed_s = {machine.step_fixed_s:.9g}",
            f"micro_batches = {int(made.micro_batches)}",
            "",
            _TAIL,
            f"pass_s = {whole}",
            'print(f"{pass_s * 1000:.3g} ms")',
        )
    )


def _alike(tables: tuple[Operators, ...]) -> list[tuple[int, Operators]]:
    """How many neighbours share each table."""
    found: list[tuple[int, Operators]] = []
    for table in tables:
        if found and found[-1][1] is table:
            found[-1] = (found[-1][0] + 1, table)
        else:
            found.append((1, table))
    return found


def _stage_lines(count: int, table: Operators, machine: Machine) -> list[str]:
    operators, collectives = [], []
    for row, collective in enumerate(table.collectives):
        if collective is None:
            operators.append(f"        {program_row(table, row, machine)},")
        else:
            collectives.append(_collective_line(table, row, collective, machine))
    return [f"    ({count}, [", *operators, "    ], [", *collectives, "    ]),"]


def _collective_line(table: Operators, row: int, collective: Collective, machine: Machine) -> str:
    calls, factor, speed = float(table.repeats[row]), collective.wire_factor(), machine.link_for(collective)
    message = float(table.link_bytes[row]) / (calls * factor) if factor else 0.0
    ways = ", ".join(
        f"({collective.steps(algorithm)}, {message * collective.wire_factor(algorithm):.9g})"
        for algorithm in ALGORITHMS
    )
    values = _listed(calls, speed.fixed_s, speed.latency_s, speed.bytes_per_s)
    return f"        ({table.names[row]!r}, {values}, [{ways}]),"


def _listed(*values: float) -> str:
    return ", ".join(f"{value:.9g}" for value in values)
