"""The time of a pass on the chips of a split plan as a worked number: what one chip does, and what it sends.

The formula is that of ``core.analytic.deployment``; here it is only written down with its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from core.analytic.deployment import PassOnChips, Phase
from core.analytic.latency import demand
from core.analytic.machine import Machine
from core.analytic.table import Operators
from core.catalog.formats import STORAGE_FORMATS
from core.ui.planner.found import Found
from core.ui.planner.split_program import program
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_gb, format_seconds, format_si

_TABLE: Final = "operator table of one chip"
_FITTED: Final = "fitted to published measurements"
_WORK: Final = "Σ operators [ calls × call cost + max( bytes / byte rate, FLOPs / FLOP rate ) ]"
_SENDING: Final = "Σ collectives [ calls × ( start + steps × latency + sent bytes / link rate ) ]"


@dataclass(frozen=True, slots=True)
class _Stage:
    """One chip of a stage with one micro-batch: seconds of its pass, its own work, and its collectives."""

    table: Operators
    pass_s: float
    work_s: float
    link_s: float

    @property
    def time_s(self) -> float:
        return self.pass_s + self.work_s + self.link_s

    @property
    def collectives(self) -> int:
        calls = zip(self.table.repeats, self.table.collectives, strict=True)
        return round(sum(float(repeats) for repeats, collective in calls if collective is not None))


def split_number(found: Found, name: str, phase: Phase, what: str, note: str) -> WorkedNumber:
    """Work out the time of a pass of a replica.

    Args:
        found: a planned scenario that is split.
        name: the quantity ("TPOT").
        phase: which pass.
        what: it, in words.
        note: what the number leaves out.

    Raises:
        FormatError: the chip cannot compute in a format of the scenario.
        ScenarioError: the chip has no link.
    """
    made, machine = found.pass_on_chips(phase), found.machine
    stages = [_stage(table, machine) for table in made.tables]
    slowest = max(stages, key=lambda stage: stage.time_s)
    formula, substituted = _written(name, phase, made, stages)
    return WorkedNumber(
        name=name,
        formula=formula,
        substituted=substituted,
        result=f"{format_seconds(float(made.time_s))} for {what}",
        inputs=(
            *_pipeline_inputs(made, stages),
            *_chip_inputs(found, slowest),
            *_link_inputs(machine, slowest),
        ),
        python=program(f"{name}: {what}", made, machine, phase),
        note=note,
    )


def _stage(table: Operators, machine: Machine) -> _Stage:
    asked = demand(table, machine)
    work = asked.fixed_s + np.maximum(asked.memory_s, asked.compute_s)
    return _Stage(table, machine.step_fixed_s, float(work.sum()), float(asked.link_s.sum()))


def _written(name: str, phase: Phase, made: PassOnChips, stages: list[_Stage]) -> tuple[str, str]:
    """The formula, and the same with today's values."""
    one = stages[0]
    if len(stages) == 1:
        values = (("pass", one.pass_s), ("one chip", one.work_s), ("collectives", one.link_s))
        shown = " + ".join(f"{format_seconds(seconds)} {word}" for word, seconds in values)
        return f"{name} = pass cost + one chip + collectives", shown
    micro, through = int(made.micro_batches), format_seconds(sum(stage.time_s for stage in stages))
    slowest = format_seconds(max(stage.time_s for stage in stages))
    if phase == "prefill":
        return f"{name} = all stages + ( m − 1 ) × slowest stage", f"{through} + {micro - 1} × {slowest}"
    return f"{name} = max( all stages, m × slowest stage )", f"max( {through}, {micro} × {slowest} )"


def _pipeline_inputs(made: PassOnChips, stages: list[_Stage]) -> tuple[Input, ...]:
    if len(stages) == 1:
        return ()
    through, micro = sum(stage.time_s for stage in stages), int(made.micro_batches)
    slowest = max(stage.time_s for stage in stages)
    parts = "pass cost + one chip + collectives"
    return (
        Input("m", "micro-batches: the batch, or as many as there are stages", f"{micro:,}", "the scenario"),
        Input("all stages", f"{len(stages):,} of them, one after another", format_seconds(through), parts),
        Input("slowest stage", "with one micro-batch", format_seconds(slowest), parts),
    )


def _chip_inputs(found: Found, stage: _Stage) -> tuple[Input, ...]:
    """What one chip of the stage reads and computes, and how fast."""
    table, machine = stage.table, found.machine
    moved, flops = float(table.streamed_bytes.sum()), float(table.total("flops"))
    row = max(
        (row for row, kind in enumerate(table.kinds) if kind == "linear"),
        key=lambda row: float(table.streamed_bytes[row]),
        default=0,
    )
    rate = machine.rate(table.kinds[row], table.formats[row], table.names[row])
    flop_rate = float(rate.flops_at(np.asarray(float(table.tokens[row]))))
    bandwidth = found.origin("bandwidth")
    arithmetic = found.origin(STORAGE_FORMATS[table.formats[row]].compute)
    return (
        Input(
            "pass cost",
            "of a pass besides its operators",
            format_seconds(stage.pass_s),
            _FITTED,
        ),
        Input(
            "one chip",
            f"reads {format_gb(moved)} and computes {format_si(flops)}FLOP",
            format_seconds(stage.work_s),
            _WORK,
        ),
        Input("bytes", "one chip's weights, cache and activations", format_gb(moved), _TABLE),
        Input("FLOPs", "one chip's multiplies and adds", f"{format_si(flops)}FLOP", _TABLE),
        Input(
            "byte rate",
            f"what its largest matrix reaches of {format_gb(machine.bandwidth_bytes_per_s)}/s",
            f"{format_gb(rate.bytes_per_s)}/s",
            bandwidth.words,
            bandwidth.url,
        ),
        Input(
            "FLOP rate",
            "what its largest matrix reaches",
            f"{format_si(flop_rate)}FLOP/s",
            arithmetic.words,
            arithmetic.url,
        ),
    )


def _link_inputs(machine: Machine, stage: _Stage) -> tuple[Input, ...]:
    """What one chip of the stage sends to others, and how fast."""
    link, table = machine.link, stage.table
    if link is None or not stage.collectives:
        return ()
    sent = float(table.total("link_bytes"))
    exchanges = [collective for collective in table.collectives if collective is not None]
    speed = machine.link_for(max(exchanges, key=lambda one: max(one.spread, one.ranks)))
    carrier = (
        link if speed.bytes_per_s == machine.link_share * link.bandwidth_bytes_per_s else machine.network
    )
    named = carrier or link
    source = f"{named.name}, read {named.date}"
    latency = "unknown, counts as 0" if named.latency_s is None else format_seconds(named.latency_s)
    return (
        Input(
            "collectives",
            f"{stage.collectives:,} of them; one chip sends {format_gb(sent)}",
            format_seconds(stage.link_s),
            _SENDING,
        ),
        Input("start", "of one collective", format_seconds(speed.fixed_s), _FITTED),
        Input("latency", "of one step", latency, source, named.source),
        Input(
            "link rate",
            f"what collectives reach of {format_gb(named.bandwidth_bytes_per_s)}/s one way",
            f"{format_gb(speed.bytes_per_s)}/s",
            source,
            named.source,
        ),
    )
