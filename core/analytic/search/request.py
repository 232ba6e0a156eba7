"""What is searched for, and among what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.analytic.cost import HourlyPrice, list_price
from core.analytic.parallel import ParallelPlan
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import accelerators
from core.catalog.formats import number_format
from core.errors import ScenarioError

#: Splits that engines are run with most, up to a server of eight chips.
USUAL_PLANS: Final = tuple(
    ParallelPlan(tp=tp, pp=pp) for tp, pp in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (4, 2))
)
USUAL_BATCHES: Final = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
USUAL_WEIGHTS: Final = ("bf16", "fp16", "fp8", "int8", "w4a16-g128")
USUAL_CACHES: Final = ("bf16", "fp16", "fp8_e4m3")
#: Fewest and most requests a second: one in twelve days, and more than the whole world sends.
RATE: Final = (1e-6, 1e9)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a deployment has to do.

    Attributes:
        input_tokens, output_tokens: of a request.
        ttft_s, tpot_s: what a user waits at most for the first token and for each further one.
        requests_per_s: how many arrive in all; None asks what one full replica does.
    """

    input_tokens: int = 2048
    output_tokens: int = 256
    ttft_s: float = math.inf
    tpot_s: float = math.inf
    requests_per_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.input_tokens), ("answer", self.output_tokens)):
            if not 1 <= value <= 2_000_000:
                raise ScenarioError(f"The {name} must have 1 to 2,000,000 tokens; got {value:,}.")
        for name, limit in (("TTFT", self.ttft_s), ("TPOT", self.tpot_s)):
            if not limit > 0:  # also true for a NaN
                raise ScenarioError(f"The {name} must be above zero; got {limit}. Give seconds.")
        low, high = RATE
        if self.requests_per_s is not None and not low <= self.requests_per_s <= high:
            raise ScenarioError(
                f"The rate must be from {low:.6f} to {high:,.0f} requests a second; got "
                f"{self.requests_per_s:g}. Give how many arrive in all."
            )


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen.

    Attributes:
        chips: by id; by default every chip on sale. plans: how a replica splits the model.
        weights, caches: formats. batches: sequences that a replica serves at once.
        prices: dollars for a chip's hour by chip id, where they replace the list's.
    """

    chips: tuple[Accelerator, ...] = field(
        default_factory=lambda: tuple(chip for chip in accelerators().values() if not chip.announced)
    )
    plans: tuple[ParallelPlan, ...] = USUAL_PLANS
    weights: tuple[str, ...] = USUAL_WEIGHTS
    caches: tuple[str, ...] = USUAL_CACHES
    batches: tuple[int, ...] = USUAL_BATCHES
    prices: Mapping[str, HourlyPrice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("chips", "plans", "weights", "caches", "batches"):
            if not getattr(self, name):
                raise ScenarioError(f"A search needs one of the {name} or more; none is given.")
        for weights in self.weights:
            number_format(weights, "weights")
        for cache in self.caches:
            number_format(cache, "kv")
        if min(self.batches) < 1:
            raise ScenarioError(f"A batch must be 1 or more; got {min(self.batches)}.")

    def price(self, chip: Accelerator) -> HourlyPrice | None:
        """The price of a chip: the given one, else the list's; None where neither is known."""
        return self.prices.get(chip.id) or list_price(chip)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.chips) * len(self.plans) * len(self.weights) * len(self.caches) * len(self.batches)
