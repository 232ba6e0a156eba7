"""What would help most: changes of a scenario, each planned anew, ranked by what they bring.

A lever is a scenario with one thing changed. Nothing is estimated: the changed scenario goes through
``plan`` like any other, and the effect is the ratio of two plans. A change that does not fit, that the
chip cannot compute, or that brings under 2 % is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from core.analytic.machine import Machine
from core.analytic.memory import Footprint, fullest
from core.analytic.plan_on_chips import divides
from core.analytic.planner_room import Case, Planned, users_that_fit
from core.analytic.planner_splits import other_splits, split_label
from core.analytic.planner_words import Goal, lever_sentence
from core.catalog.formats import FORMATS, STORAGE_FORMATS
from core.errors import UserError

LeverKind = Literal["batch", "formats", "chip", "context", "split"]

MOST_LEVERS: Final = 5
#: What a change must bring to be worth a line.
_LEAST_EFFECT: Final = 1.02
#: What another chip, or more chips, must bring: they are more trouble than a new setting.
_LEAST_CHIP_EFFECT: Final = 1.1
#: A larger batch may make each user wait this much longer for a token.
_MOST_WAIT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Lever:
    """One change and what it brings.

    Attributes:
        kind: what is changed. label: the change in a few words ("int4 weights").
        after: the changed case, planned. value: the goal then, larger is better (``value_of``).
        effect: how many times as good the goal becomes, above 1; None where it had no value before,
            because the scenario does not fit or cannot be computed.
        sentence: the change, its effect and its price.
    """

    kind: LeverKind
    label: str
    after: Planned
    value: float
    effect: float | None
    sentence: str


def value_of(goal: Goal, found: Planned) -> float | None:
    """What a goal is measured by, larger is better: 1 / seconds, tokens a second, or capacity / need.

    None where it cannot be said; what does not fit has no speed.
    """
    made = found.plan
    if goal == "fit":
        need = made.memory
        if need is None or need.capacity_bytes is None:
            return None
        return need.capacity_bytes / float(need.total_bytes)
    if made.fits is False:
        return None
    if goal == "throughput":
        return None if made.tokens_per_s is None else made.tokens_per_s * found.case.replicas
    seconds = made.tpot_s if goal == "tpot" else made.ttft_s
    return None if seconds is None else 1 / seconds


def levers(
    now: Planned, goal: Goal, machines: Mapping[str, Machine], most: int = MOST_LEVERS
) -> tuple[Lever, ...]:
    """The changes that bring most for a goal, best first, one of each kind.

    Args:
        now: the scenario as it is.
        goal: one of ``planner_words.GOALS``.
        machines: the chips to choose from, by accelerator id.
        most: how many.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.analytic.planner_room import Case
    >>> from core.catalog.accelerators import accelerators
    >>> from core.catalog.models import model
    >>> from core.catalog.scenario import Scenario
    >>> chips = {id: machine_from(chip) for id, chip in accelerators().items()}
    >>> now = Case(Scenario(), model("llama-3.1-8b"), chips["h100-sxm-80gb"]).planned()
    >>> [lever.label for lever in levers(now, "tpot", chips)]
    ['int4 weights', 'split over 2 chips', 'NVIDIA H100 NVL 94GB']
    """
    if goal in {"tpot", "throughput"} and now.case.scenario.output_tokens == 1:
        return ()  # no token comes after the first
    split = _nearest_split(now, goal)
    if not divides(now.case.model, now.case.parallel):
        return () if split is None else (split,)  # nothing else can help
    kinds: dict[LeverKind, Iterator[_Change]] = {
        "batch": _batches(now, goal),
        "formats": _formats(now),
        "context": _contexts(now),
    }
    best = [_best(now, goal, kind, changes) for kind, changes in kinds.items()]
    found = [lever for lever in (*best, split, _nearest_chip(now, goal, machines)) if lever is not None]
    return tuple(sorted(found, key=lambda lever: lever.value, reverse=True)[:most])


@dataclass(frozen=True, slots=True)
class _Change:
    label: str
    case: Case


def _best(now: Planned, goal: Goal, kind: LeverKind, changes: Iterator[_Change]) -> Lever | None:
    """The change of one kind that brings most; the first of equals. Only that one is planned."""
    promised = [(_promise(now, goal, change), change) for change in changes]
    ranked = [(value, change) for value, change in promised if value is not None]
    for _, change in sorted(ranked, key=lambda pair: pair[0], reverse=True):
        memory = _memory_if_it_fits(change.case)
        lever = _planned(now, goal, kind, change, memory) if memory else None
        if lever is not None:
            return lever
    return None


def _lever(now: Planned, goal: Goal, kind: LeverKind, change: _Change, least: float) -> Lever | None:
    """The change with its effect; None where it does not work or brings less than it must.

    Memory comes first: of the chips and splits that are tried one by one, many are too small.
    """
    memory = _memory_if_it_fits(change.case)
    if not memory or _promise(now, goal, change, least) is None:
        return None
    return _planned(now, goal, kind, change, memory)


def _memory_if_it_fits(case: Case) -> tuple[Footprint, ...]:
    """What a chip of each stage holds; empty where that is more than it can."""
    memory = case.memory()
    fits = fullest(list(memory)).fits
    return memory if fits is None or fits else ()


def _promise(now: Planned, goal: Goal, change: _Change, least: float = _LEAST_EFFECT) -> float | None:
    """What the change makes of the goal if it fits, and None where that is too little.

    It needs a third of a plan.
    """
    value, old = _if_it_fits(goal, change.case), value_of(goal, now)
    return None if value is None or (old is not None and value / old < least) else value


def _if_it_fits(goal: Goal, case: Case) -> float | None:
    """What ``value_of`` will say of a plan that fits."""
    try:
        if goal == "fit":
            need = fullest(list(case.memory()))
            return None if need.capacity_bytes is None else need.capacity_bytes / float(need.total_bytes)
        if goal == "ttft":
            return 1 / case.ttft_s()
        step_s = float(case.tpot_s(case.scenario.batch))
    except UserError:  # the chip has no such format, or no link
        return None
    return 1 / step_s if goal == "tpot" else case.replicas * case.scenario.batch / step_s


def _planned(
    now: Planned, goal: Goal, kind: LeverKind, change: _Change, memory: tuple[Footprint, ...]
) -> Lever | None:
    """The whole plan of a change that promises enough; None where it turns out to have no times."""
    after = change.case.planned(memory)
    value, old = value_of(goal, after), value_of(goal, now)
    if after.plan.ttft_s is None or value is None:
        return None
    effect = None if old is None else value / old
    article = "a " if change.label.startswith("split") else ""
    sentence = lever_sentence(f"{article}{change.label}", goal, effect, now, after)
    return Lever(kind, change.label, after, value, effect, sentence)


# --- The kinds of change --------------------------------------------------------------------------


def _batches(now: Planned, goal: Goal) -> Iterator[_Change]:
    """As many as fit where the batch is too large; else more for throughput, one for speed and room."""
    case, batch = now.case, now.case.scenario.batch
    if now.plan.fits is False:
        wanted = min(batch, users_that_fit(case) or 0)
    elif goal == "throughput":
        wanted = _larger_batch(now)
    else:
        wanted = 1
    if 0 < wanted != batch:
        yield _Change(f"batch {wanted:,}", case.changed(batch=wanted))


def _larger_batch(now: Planned) -> int:
    """The largest power of two that fits and at most doubles each user's time per token; 0 if none."""
    case, tpot_now_s = now.case, now.plan.tpot_s
    if tpot_now_s is None:
        return 0
    room = users_that_fit(case) or 0
    powers = [2**power for power in range(17) if case.scenario.batch < 2**power <= room]
    if not powers:
        return 0
    bearable = case.tpot_s(np.array(powers)) <= _MOST_WAIT * tpot_now_s
    return max((power for power, fine in zip(powers, bearable, strict=True) if fine), default=0)


def _formats(now: Planned) -> Iterator[_Change]:
    """Coarser weights that the chip computes, and a 16-bit cache; every format where none is timed yet."""
    case, before = now.case, now.plan
    machine = case.machine
    supported = [
        record
        for record in FORMATS.values()
        if record.compute in machine.peak_flops_per_s and machine.knows("linear", record.id)
    ]
    bits = STORAGE_FORMATS[case.scenario.weights].payload_bits
    weights = [r for r in supported if before.ttft_s is None or r.payload_bits < bits]
    weights += [r for r in supported if r.id == case.scenario.weights and r not in weights]
    caches = [record.id for record in supported if "kv" in record.uses]
    kv = case.scenario.kv if case.scenario.kv in caches else next((c for c in caches if c != "fp32"), "fp32")
    smaller = ["bf16"] if kv == "fp32" and "bf16" in caches else []
    for record in weights:
        for cache in (kv, *smaller):
            if (record.id, cache) != (case.scenario.weights, case.scenario.kv):
                yield _Change(
                    _format_label(case, record.id, cache), case.changed(weights=record.id, kv=cache)
                )


def _format_label(case: Case, weights: str, kv: str) -> str:
    parts = [f"{weights} weights"] if weights != case.scenario.weights else []
    parts += [f"{kv} cache"] if kv != case.scenario.kv else []
    return " and ".join(parts)


def _contexts(now: Planned) -> Iterator[_Change]:
    """Half the input: the one change of the work itself."""
    case = now.case
    if case.scenario.input_tokens > 1:
        half = case.scenario.input_tokens // 2
        yield _Change(f"{half:,} input tokens", case.changed(input_tokens=half))


#: The data-sheet number by which chips are tried, nearest first.
_CHIP_ORDER: Final[dict[Goal, Callable[[Machine], float]]] = {
    "tpot": lambda chip: chip.bandwidth_bytes_per_s,
    "throughput": lambda chip: chip.bandwidth_bytes_per_s,
    "ttft": lambda chip: max(chip.peak_flops_per_s.get(name, 0.0) for name in ("bf16", "fp16")),
    "fit": lambda chip: chip.capacity_bytes or 0.0,
}


def _nearest_chip(now: Planned, goal: Goal, machines: Mapping[str, Machine]) -> Lever | None:
    """The next larger chip that brings a tenth or more, not the largest there is."""
    case, order = now.case, _CHIP_ORDER[goal]
    at_least = 0.0 if value_of(goal, now) is None or now.plan.fits is False else order(case.machine)
    larger = sorted(
        (m for m in machines.values() if order(m) > at_least and m.id != case.machine.id), key=order
    )
    for chip in larger:
        if chip.capacity_bytes is None:
            continue
        change = _Change(chip.name, replace(case.changed(accelerator=chip.id), machine=chip))
        lever = _lever(now, goal, "chip", change, _LEAST_CHIP_EFFECT)
        if lever is not None:
            return lever
    return None


def _nearest_split(now: Planned, goal: Goal) -> Lever | None:
    """The nearest split that brings a tenth or more, not the widest there is.

    Chips that are added must give more tokens a second than as many replicas would.
    """
    before = now.case.scenario.count
    for other in other_splits(now.case, pipelines=now.plan.fits is not True):
        added = max(other.scenario.count / before, 1.0) if goal == "throughput" else 1.0
        change = _Change(split_label(other), other)
        lever = _lever(now, goal, "split", change, _LEAST_CHIP_EFFECT * added)
        if lever is not None:
            return lever
    return None
