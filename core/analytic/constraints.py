"""What speaks against a plan: every reason at once, and the nearest plans without one.

What must divide is said by ``split_rules``; here come the chips there are, their links, the formats
they can multiply, and what they can hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import log2
from typing import Final

from core.analytic.latency import unsupported_sentence
from core.analytic.machine import Machine
from core.analytic.memory import Footprint, footprint
from core.analytic.parallel import ParallelPlan
from core.analytic.params import layer_kinds, stored_bytes, weight_plan
from core.analytic.split_rules import MOST_TENSOR, Violation, group_violations, split_violations
from core.catalog.feed_forward import MoE
from core.catalog.formats import number_format
from core.catalog.model import ModelSpec
from core.units import format_gib

#: Chips that are tried at least, and plans that are weighed at most.
_MOST_CHIPS: Final = 64
_MOST_TRIES: Final = 48
#: The longest pipeline that is proposed.
_MOST_STAGES: Final = 16
#: What doubling or halving each degree costs; a pipeline a little more, since it answers no sooner.
_PRICES: Final = {"tp": 1.0, "pp": 1.1, "ep": 1.0, "dp": 1.0, "cp": 1.0}
#: Changing the number of chips counts as so many changes of a degree.
_CHIPS_WEIGHT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a replica serves: sequences that grow to ``context`` tokens, in formats by their ids."""

    batch: int
    context: int
    weights: str
    kv: str


def violations(
    model: ModelSpec,
    plan: ParallelPlan,
    machine: Machine,
    load: Load,
    count: int | None = None,
    *,
    need: Footprint | None = None,
) -> tuple[Violation, ...]:
    """Everything that speaks against a plan of serving a load, one sentence each.

    Args:
        model: what runs.
        plan: how it is split.
        machine: the chips.
        load: what a replica serves.
        count: chips there are; None where the plan may have as many as it needs.
        need: what the fullest chip holds, where that is known already.

    Raises:
        FormatError: a format is unknown, or not for its use.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> found = violations(model("llama-3.3-70b"), ParallelPlan(tp=3), chip, Load(1, 8192, "bf16", "bf16"))
    >>> [one.topic for one in found]
    ['heads', 'heads', 'columns']
    """
    shape = (*split_violations(model, plan), *group_violations(model, plan, load.weights))
    grid = (*_chip_violations(plan, count), *_link_violations(plan, machine))
    formats = _format_violations(model, machine, load)
    if any(one.topic in {"layers", "experts"} for one in shape):
        return (*shape, *grid, *formats)  # no share of a chip is defined, so none can be weighed
    return (
        *shape,
        *grid,
        *formats,
        *_memory_violations(plan, need or _need(model, plan, machine, load), machine),
    )


def _chip_violations(plan: ParallelPlan, count: int | None) -> list[Violation]:
    if count is None or plan.chips == count:
        return []
    there_are = "the one chip there is" if count == 1 else f"the {count:,} chips there are"
    return [
        Violation(
            "chips",
            f"The plan must use {there_are}; "
            f"tp {plan.tp} times pp {plan.pp} times dp {plan.dp} is {plan.chips:,}. "
            "Change the plan or the count.",
        )
    ]


def _link_violations(plan: ParallelPlan, machine: Machine) -> list[Violation]:
    shared = max(plan.tp * plan.pp, plan.ep) > 1
    if not shared or machine.link is not None:
        return []
    return [
        Violation(
            "link",
            f"Chips that share a model need a link between them; none is known of {machine.name}. Choose a "
            "chip with a link, or a plan on one chip.",
        )
    ]


def _format_violations(model: ModelSpec, machine: Machine, load: Load) -> list[Violation]:
    formats = weight_plan(load.weights, model)
    needed = (formats.linear, formats.format_of("expert"), formats.head, number_format(load.kv, "kv"))
    missing = [record for record in needed if record.compute not in machine.peak_flops_per_s]
    return [
        Violation("format", unsupported_sentence(format_id, machine))
        for format_id in dict.fromkeys(record.id for record in missing)
    ]


def _need(model: ModelSpec, plan: ParallelPlan, machine: Machine, load: Load) -> Footprint:
    return footprint(
        model,
        machine,
        batch=load.batch,
        context=load.context,
        weights=load.weights,
        kv=load.kv,
        plan=plan,
    )


def _memory_violations(plan: ParallelPlan, need: Footprint, machine: Machine) -> Iterator[Violation]:
    if need.capacity_bytes is None or need.fits:
        return
    chip = f"the {format_gib(need.capacity_bytes)} of {machine.name}"
    total = format_gib(float(need.total_bytes))
    whose = f"{total} must" if plan.tp * plan.pp == 1 else f"The {total} of the fullest chip must"
    more = "a larger chip" if plan.tp * plan.pp == 1 else "more chips"
    yield Violation(
        "memory", f"{whose} fit into {chip}. Choose a smaller format, batch or context, or {more}."
    )


# --- The nearest plans that work ------------------------------------------------------------------


def nearest_plans(
    model: ModelSpec,
    plan: ParallelPlan,
    machine: Machine,
    load: Load,
    *,
    count: int | None = None,
    most: int = 3,
) -> tuple[ParallelPlan, ...]:
    """Plans against which nothing speaks, those with the fewest and smallest changes first.

    A change of a degree counts by its factor: from 2 to 8 is as far as from 8 to 2. Other numbers of chips
    are tried too, at a higher price; a capacity that is unknown keeps nothing out. Empty where nothing
    can help, for instance because the chip lacks a format.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> chip = machine_from(accelerator("h100-sxm-80gb"))
    >>> plans = nearest_plans(model("llama-3.3-70b"), ParallelPlan(tp=3), chip, Load(1, 8192, "bf16", "bf16"))
    >>> [(found.tp, found.pp, found.dp) for found in plans]
    [(4, 1, 1), (2, 1, 1), (2, 1, 2)]
    """
    if _format_violations(model, machine, load):
        return ()
    wanted = plan.chips if count is None else count
    # What divides depends on the kinds of layers, not on how often each is there.
    thin = replace(model, layers=tuple(layer for layer, _ in layer_kinds(model)))
    candidates = sorted(
        _candidates(thin, plan, wanted, model.num_layers), key=lambda other: _distance(plan, other, wanted)
    )
    least = _least_chips(model, machine, load)
    # Replicas are copies, unless they share the experts.
    large = (other for other in candidates if other.tp * other.pp * other.pooled >= least)
    hopeful = (other for other in large if _divides(thin, other))
    whole = (other for other in hopeful if not group_violations(thin, other, load.weights))
    fine = (other for other in islice(whole, _MOST_TRIES) if _is_held(model, other, machine, load))
    return tuple(islice(fine, most))


def _is_held(model: ModelSpec, plan: ParallelPlan, machine: Machine, load: Load) -> bool:
    """Whether chips with a link between them can hold it."""
    if _link_violations(plan, machine):
        return False
    return not any(_memory_violations(plan, _need(model, plan, machine, load), machine))


def _least_chips(model: ModelSpec, machine: Machine, load: Load) -> float:
    """Chips that the weights alone need if nothing is kept twice; no plan works on fewer."""
    if machine.capacity_bytes is None:
        return 1.0
    return stored_bytes(model, load.weights) / machine.capacity_bytes


def _candidates(model: ModelSpec, plan: ParallelPlan, wanted: int, num_layers: int) -> Iterator[ParallelPlan]:
    """Plans whose tensor-parallel degree divides, on the wanted number of chips and on some others."""
    has_experts = any(isinstance(layer.feed_forward, MoE) for layer in model.layers)
    degrees = [tp for tp in range(1, MOST_TENSOR + 1) if not split_violations(model, ParallelPlan(tp=tp))]
    most = max(8 * wanted, _MOST_CHIPS)
    for chips in sorted({wanted, *(2**power for power in range(11) if 2**power <= most)}):
        for tp in degrees:
            for pp in range(1, min(_MOST_STAGES, num_layers) + 1):
                if chips % (tp * pp):
                    continue
                dp = chips // (tp * pp)
                for ep in {1, tp, tp * dp} if has_experts else {1}:
                    other = ParallelPlan(tp=tp, pp=pp, ep=ep, dp=dp)
                    yield other
                    if plan.cp > 1:
                        yield replace(other, cp=plan.cp)


def _divides(model: ModelSpec, plan: ParallelPlan) -> bool:
    """Whether experts and caches divide too; stages have layers enough, and nothing else asks for them."""
    return plan.ep == plan.cp == 1 or not split_violations(model, replace(plan, pp=1))


def _distance(plan: ParallelPlan, other: ParallelPlan, wanted: int) -> float:
    changed = sum(
        price * abs(log2(getattr(other, name) / getattr(plan, name))) for name, price in _PRICES.items()
    )
    return changed + _CHIPS_WEIGHT * abs(log2(other.chips / wanted))
