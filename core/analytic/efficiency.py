"""What software reaches of a chip, as sums of effects: of the chip's class, the format, the engine, the year.

Each quantity (a share of a peak, a fixed cost) is one number on a scale where effects add: the logit
for shares, the logarithm for costs. An effect that no measurement informs stays at its centre, which is
zero except where physics says otherwise. The fit (``core.analytic.validation``) finds the effects;
``assets/priors.csv`` keeps them; ``datasheet.machine_from`` adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from core.analytic.setting import YEAR_ZERO, Setting, wide_peak

#: How far effects of time reach on either side of ``YEAR_ZERO``.
_YEARS: Final = (-1.2, 1.5)
#: The 16-bit peak from which effects of size count.
_USUAL_PEAK: Final = 150e12
_SMALL_PEAK: Final = 30e12


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of the predictor.

    Attributes:
        scale: "logit" for shares, "log" for costs and rates. unit: of the number itself.
        centre, spread: what is expected before any measurement, in the unit, and its standard deviation
            on the scale. levels: what further effects there are, each with its standard deviation.
        meaning: what the number is.
    """

    scale: Literal["logit", "log"]
    unit: str
    centre: float
    spread: float
    levels: Mapping[str, float]
    meaning: str

    def number(self, value: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """From the scale to the unit."""
        x = np.asarray(value, np.float64)
        return np.asarray(1 / (1 + np.exp(-x)) if self.scale == "logit" else np.exp(x))

    @property
    def start(self) -> float:
        """The centre on the scale."""
        return math.log(self.centre / (1 - self.centre)) if self.scale == "logit" else math.log(self.centre)


QUANTITIES: Final[dict[str, Quantity]] = {
    "weight_bandwidth": Quantity(
        "logit",
        "share",
        0.82,
        0.5,
        {"chip": 0.4, "width": 0.3, "engine": 0.25, "chip+width": 0.25, "style+width": 0.25},
        "of peak bandwidth while reading weights",
    ),
    "kv_bandwidth": Quantity(
        "logit",
        "share",
        0.80,
        0.5,
        {"chip": 0.4, "style": 0.4, "engine": 0.4, "shared heads": 0.2},
        "of peak bandwidth while reading the KV cache",
    ),
    "compute": Quantity(
        "logit",
        "share",
        0.55,
        0.5,
        {"rates": 0.4, "engine": 0.8, "format": 0.3, "size": 0.2, "year": 0.15, "portable": 0.5},
        "of the dense peak in large matrix products",
    ),
    "attention_compute": Quantity(
        "logit", "share", 0.5, 0.7, {"engine": 1.0}, "of that rate while a prompt attends to itself"
    ),
    "layer_us": Quantity(
        "log",
        "us",
        50.0,
        0.7,
        {"style": 0.6, "chip": 0.5, "style+chip": 0.4, "engine": 0.5, "width": 0.4, "year": 0.15},
        "fixed cost of a layer of 12 operators",
    ),
    "step_us": Quantity("log", "us", 240.0, 0.5, {}, "fixed cost of a pass besides its layers"),
    "sampling_gb_per_s": Quantity("log", "GB/s", 60.0, 0.7, {}, "logits turned into tokens"),
    "tile_tokens": Quantity("log", "tokens", 4.5, 0.5, {}, "rows by which a GPU pads a matrix product"),
    "collective_us": Quantity(
        "log", "us", 10.0, 0.7, {"link": 0.6, "style": 0.3}, "fixed cost of one exchange between chips"
    ),
    "link_bandwidth": Quantity("logit", "share", 0.25, 0.6, {"link": 0.4}, "of a link's one-way bandwidth"),
    "request_ms": Quantity("log", "ms", 5.0, 1.0, {}, "what a server adds to a request's first token"),
    "score_bytes": Quantity(
        "log", "B", 16.0, 0.5, {}, "moved for each score where attention is not fused: written, scaled, read"
    ),
}

#: Effects that physics gives a centre other than zero, on the scale of their quantity.
CENTRES: Final[dict[str, float]] = {
    # Units that halve their rate are kept busy by half the data.
    "compute|rates:half-rate": 1.3,
    # Best measured products: about half of the printed peak.
    # https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md
    "compute|rates:amd": -0.3,
    # A GPU whose vector units do the products reaches four fifths of them.
    # https://github.com/philipturner/metal-flash-attention
    "compute|rates:apple": 0.5,
    # Kernels written for older chips reach half of what Hopper's own do: FlashAttention 2 against 3,
    # https://arxiv.org/abs/2407.08608
    "compute|portable": -0.9,
    # Larger chips are harder to fill; software gets better every year.
    "compute|size": -0.3,
    "compute|year": 0.2,
    "layer_us|year": -0.25,
    "layer_us|style:eager": 0.7,
    "collective_us|link:pcie": 1.0,
}
#: Effects with a spread of their own.
SPREADS: Final[dict[str, float]] = {"compute|format:packed4": 2.0, "layer_us|eager engine": 0.6}


def effects_of(quantity: str, setting: Setting) -> dict[str, float]:
    """The effects that a quantity is the sum of in a setting, each with its weight.

    >>> from core.catalog.accelerators import accelerator
    >>> effects_of("step_us", Setting(accelerator("t4"), "python", "vllm", "16"))
    {'step_us': 1.0}
    """
    found = {quantity: 1.0}
    for level in QUANTITIES[quantity].levels:
        key, weight = _level(quantity, level, setting)
        if weight:
            found[f"{quantity}|{key}"] = weight
    return found


def _level(quantity: str, level: str, at: Setting) -> tuple[str, float]:  # noqa: PLR0911 - one a level
    kind, style = at.chip.kind, at.style
    match level:
        case "year":
            aged = 0.0 if kind == "cpu" else float(np.clip(at.year - YEAR_ZERO, *_YEARS))
            return "year", aged
        case "size":
            peak = wide_peak(at.chip)
            return "size", math.log(peak / _USUAL_PEAK) if peak > _SMALL_PEAK else 0.0
        case "shared heads":
            return "shared heads", math.log(at.group)
        case "portable":
            old = at.chip.architecture == "Hopper" and style == "local"
            return "portable", 1.0 if old else 0.0
        case "rates":
            return f"rates:{at.rate_class}", 1.0
        case "link":
            return f"link:{at.link_class}", 1.0
        case "engine":
            name = f"{at.engine} eager" if style == "eager" and quantity == "layer_us" else at.engine
            return f"engine:{name}", 1.0
    values = {"chip": kind, "style": style, "width": at.width, "format": at.format}
    parts = level.split("+")
    return f"{level}:{'+'.join(values[part] for part in parts)}", 1.0


def spread_of(effect: str) -> float:
    """The standard deviation of an effect before any measurement, on its quantity's scale."""
    quantity, _, key = effect.partition("|")
    if not key:
        return QUANTITIES[quantity].spread
    if key.endswith(" eager"):
        return SPREADS["layer_us|eager engine"]
    return SPREADS.get(effect, QUANTITIES[quantity].levels[key.partition(":")[0]])


def centre_of(effect: str) -> float:
    """What an effect is expected to be before any measurement, on its quantity's scale."""
    quantity, _, key = effect.partition("|")
    return CENTRES.get(effect, 0.0) if key else QUANTITIES[quantity].start
