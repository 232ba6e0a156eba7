"""Times every candidate at once: each operator table on all chips, each batch in one sweep.

A replica serves requests that come one after another, as servers do (continuous batching): a prompt is
read alone, between the steps of the others. ``core.analytic.served`` says what that comes to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.datasheet import machine_from
from core.analytic.memory import stage_footprint
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.search.chip_array import Array, ChipArray
from core.analytic.search.request import Choices, Wanted
from core.analytic.served import served
from core.analytic.split_rules import group_violations, split_violations
from core.catalog.model import ModelSpec

_SECONDS_PER_HOUR: Final = 3600.0
_MILLION: Final = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """Every candidate: arrays ``[chips, plans, weights, caches, batches]``.

    Attributes:
        wanted, choices: what was asked. ttft_s, tpot_s: none of a number where a chip cannot run it.
        memory_margin: free share of a chip's memory, negative where it does not fit.
        requests_per_s: of one replica. replicas, chips: needed for the asked rate; one replica otherwise.
        usd_per_million: output tokens, their prompts included, idle time too. Not a number without a price.
        good: fits, keeps the limits, and can be computed.
    """

    wanted: Wanted
    choices: Choices
    ttft_s: Array
    tpot_s: Array
    memory_margin: Array
    requests_per_s: Array
    replicas: Array
    chips: Array
    usd_per_million: Array
    good: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """How many candidates were looked at."""
        return self.good.size


def search(model: ModelSpec, wanted: Wanted, choices: Choices | None = None) -> Searched:
    """Time and price every candidate.

    Raises:
        FormatError: a format is unknown, or not for its use.

    >>> from core.catalog.models import model
    >>> found = search(model("llama-3.1-8b"), Wanted(tpot_s=0.05, ttft_s=1.0))
    >>> found.size > 100_000, bool(found.good.any())
    (True, True)
    """
    among = choices or Choices()
    machines = ChipArray(tuple(machine_from(chip) for chip in among.chips))
    shape = (len(among.chips), len(among.plans), len(among.weights), len(among.caches), len(among.batches))
    prompt_s, step_s, need = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    for plan_index, plan in enumerate(among.plans):
        for weight_index, weights in enumerate(among.weights):
            if split_violations(model, plan) or group_violations(model, plan, weights):
                continue
            for cache_index, cache in enumerate(among.caches):
                place = (slice(None), plan_index, weight_index, cache_index)
                timer = _Timer(model, machines, plan, weights, cache, wanted, among.batches)
                prompt_s[place], step_s[place] = timer.prompt_s()[:, None], timer.step_s()
                need[place] = timer.need_bytes() + machines.overhead_bytes[:, None]
    return _judged(wanted, among, machines, prompt_s=prompt_s, step_s=step_s, need=need)


@dataclass(frozen=True, slots=True)
class _Timer:
    """One plan and one pair of formats on all chips."""

    model: ModelSpec
    machines: ChipArray
    plan: ParallelPlan
    weights: str
    cache: str
    wanted: Wanted
    batches: tuple[int, ...]

    def prompt_s(self) -> Array:
        """One prompt alone, through all stages: ``[chips]``."""
        tokens = self.wanted.input_tokens
        return np.asarray(self._stages(np.asarray(1.0), tokens, tokens, prefill=True).sum(axis=0))

    def step_s(self) -> Array:
        """One step of each batch in the middle of the answers: ``[chips, batches]``.

        As ``deployment.pass_on_chips``: the longer of one way through the stages and a turn of all
        micro-batches at the slowest.
        """
        batch = np.array(self.batches, np.float64)
        micro = np.minimum(float(self.plan.pp), batch)
        context = self.wanted.input_tokens + max(self.wanted.output_tokens // 2, 1)
        each = self._stages(batch / micro, 1, context, prefill=False)
        return np.asarray(np.maximum(each.sum(axis=0), micro * each.max(axis=0)))

    def _stages(self, batch: Array, new_tokens: int, context: int, *, prefill: bool) -> Array:
        return np.stack(
            [
                self.machines.step_s(
                    device_operators(
                        self.model,
                        self.plan,
                        stage,
                        batch=batch,
                        new_tokens=new_tokens,
                        context=context,
                        weights=self.weights,
                        kv=self.cache,
                        latent="expanded" if prefill else "absorbed",
                    )
                )
                for stage in stages(self.model, self.plan)
            ]
        )

    def need_bytes(self) -> Array:
        """What the fullest chip holds without the framework: ``[batches]``."""
        bare = replace(self.machines.machines[0], overhead_bytes=0.0)
        context = self.wanted.input_tokens + self.wanted.output_tokens
        each = [
            stage_footprint(
                self.model,
                bare,
                self.plan,
                stage,
                batch=np.array(self.batches, np.float64),
                context=context,
                weights=self.weights,
                kv=self.cache,
            ).total_bytes
            for stage in stages(self.model, self.plan)
        ]
        return np.asarray(np.max(each, axis=0))


def _judged(
    wanted: Wanted, among: Choices, machines: ChipArray, *, prompt_s: Array, step_s: Array, need: Array
) -> Searched:
    batch = np.array(among.batches, np.float64)
    answer = float(wanted.output_tokens)
    times = served(prompt_s, step_s, batch, answer)
    ttft, tpot, rate = times.ttft_s, times.tpot_s, times.requests_per_s
    capacity = machines.capacity_bytes[:, None, None, None, None]
    margin = (capacity - need) / capacity
    replicas = np.ones_like(rate) if wanted.requests_per_s is None else np.ceil(wanted.requests_per_s / rate)
    split = np.array([plan.chips for plan in among.plans], np.float64)[:, None, None, None]
    chips = replicas * split
    used = rate if wanted.requests_per_s is None else np.asarray(wanted.requests_per_s)
    prices = [among.price(chip) for chip in among.chips]
    hourly = np.array([np.nan if price is None else price.usd for price in prices])
    usd = chips * hourly[:, None, None, None, None] / _SECONDS_PER_HOUR / used / answer * _MILLION
    with np.errstate(invalid="ignore"):
        good = (margin >= 0) & (ttft <= wanted.ttft_s) & (tpot <= wanted.tpot_s)
    return Searched(wanted, among, ttft, tpot, margin, rate, replicas, chips, usd, good)
