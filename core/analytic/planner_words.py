"""What the planner says: a lever, and what a pass waits for, each in a sentence or two."""

from __future__ import annotations

from typing import Final, Literal

from core.analytic.cost import list_price
from core.analytic.machine import Machine
from core.analytic.plan import PassCost, Plan
from core.analytic.planner_room import Planned
from core.analytic.roofline import ridge_flops_per_byte
from core.catalog.accelerators import accelerators
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.scenario import Scenario
from core.units import format_count, format_gib, format_seconds, significant

Goal = Literal["tpot", "ttft", "throughput", "fit"]

#: What a planner can be asked to improve, as a page shows it.
GOALS: Final[dict[Goal, str]] = {
    "tpot": "time per token",
    "ttft": "time to first token",
    "throughput": "tokens a second, all users together",
    "fit": "room in memory",
}
#: A price of less than this is not worth a sentence.
_FELT: Final = 1.02


def lever_sentence(label: str, goal: Goal, effect: float | None, before: Planned, after: Planned) -> str:
    """A change, its effect on the goal, and its price."""
    old = "" if effect is None else f" instead of {_value(goal, before)}"
    factor = "" if effect is None else f": {significant(effect)} × {_BETTER[goal]}"
    reached = _REACHED[goal].format(_value(goal, after))
    parts = [f"With {label}, {reached}{old}{factor}."]
    if before.plan.fits is False:
        parts.append("Then it fits, which it does not now.")
    return " ".join((*parts, *_prices(goal, before, after)))


_BETTER: Final[dict[Goal, str]] = {
    "tpot": "as fast",
    "ttft": "as fast",
    "throughput": "as many",
    "fit": "as much room",
}
_REACHED: Final[dict[Goal, str]] = {
    "tpot": "a token takes {}",
    "ttft": "the first token comes after {}",
    "throughput": "all users together get {}",
    "fit": "memory is {} full",
}


def _value(goal: Goal, found: Planned) -> str:
    """The goal's own quantity, with its unit."""
    made = found.plan
    if goal == "tpot" and made.tpot_s is not None:
        return format_seconds(made.tpot_s)
    if goal == "ttft" and made.ttft_s is not None:
        return format_seconds(made.ttft_s)
    if goal == "throughput" and made.tokens_per_s is not None:
        return f"{significant(made.tokens_per_s * found.case.replicas)} tokens/s"
    if goal == "fit" and made.memory is not None and made.memory.capacity_bytes:
        return f"{float(made.memory.total_bytes) / made.memory.capacity_bytes:,.0%}"
    return "an unknown value"


def _prices(goal: Goal, before: Planned, after: Planned) -> list[str]:
    old, new = before.case.scenario, after.case.scenario
    prices = _waits(before.plan, after.plan) if goal != "tpot" else []
    if new.batch < old.batch:
        users = format_count(new.batch, "user")
        prices.append(f"It serves {users} at once, not {old.batch:,}.")
    if STORAGE_FORMATS[new.weights].payload_bits < STORAGE_FORMATS[old.weights].payload_bits:
        prices.append("Coarser weights can change the text: check the answers on your own task.")
    if new.input_tokens < old.input_tokens:
        prices.append("That needs prompts that say the same in half the tokens.")
    if new.count != old.count:
        prices.append(f"It takes {format_count(new.count, 'chip')}, not {old.count:,}.")
    if (new.accelerator, new.count) != (old.accelerator, old.count):
        prices.append(_hourly_sentence(old, new))
    return prices


def _hourly_sentence(old: Scenario, new: Scenario) -> str:
    """What the chips cost for an hour, before and after."""
    before, after = _usd_per_hour(old), _usd_per_hour(new)
    if after is None:
        return "No dated price of the chip is known."
    instead = "" if before is None else f" instead of ${significant(before)}"
    return f"At list prices that is ${significant(after)} an hour{instead}."


def _usd_per_hour(scenario: Scenario) -> float | None:
    """List price of all chips; None where no dated one is known, as of a chip that a visitor brought."""
    chip = accelerators().get(scenario.accelerator)
    price = None if chip is None else list_price(chip)
    return None if price is None else price.usd * scenario.count


def _waits(before: Plan, after: Plan) -> list[str]:
    if not before.fits or not before.tpot_s or not after.tpot_s or after.tpot_s <= _FELT * before.tpot_s:
        return []
    return [
        f"Each user then waits {format_seconds(after.tpot_s)} for a token instead of "
        f"{format_seconds(before.tpot_s)}."
    ]


def waiting_sentence(name: str, cost: PassCost, machine: Machine, weights: str) -> str:
    """What a pass waits for, in a sentence or two.

    Args:
        name: "Prefill" or "Decode".
        cost: what it takes.
        machine: where.
        weights: their format.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> waiting_sentence("Decode", PassCost(16e9, 15e9, 0.008, "memory", 2.0), chip, "bf16")
    'Decode waits for memory: it does 1.07 FLOPs for each byte it moves, and the chip wants 295.'
    """
    peak = machine.peak_flops_per_s.get(STORAGE_FORMATS[weights].compute)
    if cost.limit is None or peak is None:
        return f"{name} has no time here, so what it waits for is unknown."
    if cost.limit == "overhead":
        return f"{name} waits for fixed costs: starting its operators takes longer than their work."
    if cost.limit == "link":
        return f"{name} waits for other chips: what they send takes longer than reading or computing."
    done = significant(cost.flops / cost.bytes)
    ridge = significant(ridge_flops_per_byte(peak, machine.bandwidth_bytes_per_s))
    if cost.limit == "memory":
        return (
            f"{name} waits for memory: it does {done} FLOPs for each byte it moves, and the chip wants "
            f"{ridge}."
        )
    return (
        f"{name} waits for arithmetic: it does {done} FLOPs for each byte it moves, and the chip is busy "
        f"from {ridge} on."
    )


def memory_sentence(made: Plan) -> str:
    """Whether it fits, and how full the memory is."""
    need = made.memory
    if need is None:
        return "The model does not divide by this plan, so no memory is given."
    total = format_gib(float(need.total_bytes))
    if need.capacity_bytes is None:
        return f"It takes {total}. How much this chip offers to software is unknown."
    verb = "fits" if made.fits else "does not fit"
    return f"It {verb}: {total} of {format_gib(need.capacity_bytes)}."
