"""What a plan's times are worth: their ranges, and what its tokens cost in money and energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analytic.cost import (
    HourlyPrice,
    Power,
    TokenCost,
    TokenEnergy,
    Work,
    list_price,
    token_cost,
    token_energy,
    usual_power,
)
from core.analytic.machine import Machine
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import Plan
from core.analytic.prediction_range import Conditions, Range, prediction_range
from core.analytic.setting import format_class
from core.catalog.accelerator import Accelerator
from core.catalog.feed_forward import MoE
from core.catalog.formats import number_format
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario


@dataclass(frozen=True, slots=True)
class PlanValue:
    """Ranges, money and energy; None where the plan has no times, or the fact behind it is not known.

    Attributes:
        ttft, tpot: the ranges that should hold four measurements in five; None for a measured machine.
        cost: dollars for a million tokens, and for a request. energy: joules for a token.
        price: what the cost was made with. notes: sentences that belong beside these numbers.
    """

    ttft: Range | None
    tpot: Range | None
    cost: TokenCost | None
    energy: TokenEnergy | None
    price: HourlyPrice | None
    notes: tuple[str, ...]


def conditions(
    machine: Machine, model: ModelSpec, scenario: Scenario, plan: ParallelPlan | None = None
) -> Conditions:
    """What the range of a scenario's prediction depends on.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> conditions(machine_from(accelerator("t4")), model("mixtral-8x7b-v0.1"), Scenario()).experts
    True
    """
    split = plan or ParallelPlan(scenario.tp, scenario.pp, scenario.ep)
    return Conditions(
        kind=machine.kind,
        announced=machine.announced,
        batch=float(scenario.batch),
        context=float(scenario.input_tokens + scenario.output_tokens),
        chips=split.tp,
        pipeline=split.pp,
        format_class=format_class(number_format(scenario.weights, "weights")),
        experts=any(isinstance(layer.feed_forward, MoE) for layer in model.layers),
        state=model.attention in {"hybrid", "ssm"},
    )


def value_of(
    made: Plan,
    scenario: Scenario,
    model: ModelSpec,
    machine: Machine,
    chip: Accelerator | None = None,
    *,
    plan: ParallelPlan | None = None,
    price: HourlyPrice | None = None,
    power: Power | None = None,
    load: float = 1.0,
) -> PlanValue:
    """Value a plan that was made for one replica.

    Args:
        made: the plan, with its times.
        scenario: what it was made of.
        model: what runs.
        machine: where.
        chip: the data sheet, for its price and power; None where there is none.
        plan: how the replica is split; the scenario's degrees unless given.
        price: in place of the list's.
        power: in place of the data sheet's.
        load: share of the paid time that is used, above 0 and at most 1.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.analytic.plan import plan as make
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip, spec = accelerator("h100-sxm-80gb"), model("llama-3.1-8b")
    >>> made = make(Scenario(), spec, machine_from(chip))
    >>> value_of(made, Scenario(), spec, machine_from(chip), chip).tpot.high_s > made.tpot_s
    True
    """
    if made.ttft_s is None:
        return PlanValue(None, None, None, None, None, ())
    split = plan or ParallelPlan(scenario.tp, scenario.pp, scenario.ep)
    at, known = conditions(machine, model, scenario, split), bool(machine.kind)
    ttft = prediction_range(made.ttft_s, at, prefill=True) if known else None
    tpot = None if made.tpot_s is None or not known else prediction_range(made.tpot_s, at)
    work = _work(made, scenario, split, load)
    hourly = price or (None if chip is None else list_price(chip))
    watts = power or (None if chip is None else usual_power(chip))
    cost = None if hourly is None else token_cost(work, hourly)
    energy = None if watts is None else token_energy(work, watts)
    return PlanValue(ttft, tpot, cost, energy, hourly, _notes(ttft, hourly, watts, load))


def _work(made: Plan, scenario: Scenario, split: ParallelPlan, load: float) -> Work:
    """The batch of one replica on its chips."""
    return Work(
        ttft_s=np.nan if made.ttft_s is None else made.ttft_s,
        tpot_s=0.0 if made.tpot_s is None else made.tpot_s,
        batch=scenario.batch,
        input_tokens=scenario.input_tokens,
        output_tokens=scenario.output_tokens,
        chips=split.tp * split.pp,
        load=load,
    )


def _notes(
    ttft: Range | None, price: HourlyPrice | None, power: Power | None, load: float
) -> tuple[str, ...]:
    notes = []
    if ttft is not None:
        outside = f" They are wider here: {'; '.join(ttft.reasons)}." if ttft.reasons else ""
        notes.append(f"Ranges hold four published measurements in five.{outside}")
    else:
        notes.append("A measured machine has the spread of its own measurements, and no published range.")
    busy = "busy all the time" if load == 1 else f"busy {load:.0%} of the time"
    if price is None:
        notes.append("No dated price of this chip is known, so no cost is given. Type one in.")
    else:
        notes.append(f"Cost: {price.note()} The batch runs {busy}.")
    if power is None:
        notes.append("Nobody states what this chip draws, so no energy is given.")
    else:
        notes.append(
            f"Energy: {power.prefill_w:,.0f} W while prompts are read, {power.decode_w:,.0f} W while "
            f"decoding, {power.idle_w:,.0f} W idle, for each chip; the host and cooling are left out."
        )
    return tuple(notes)
