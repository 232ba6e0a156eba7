"""The range around a predicted time that should hold four measurements in five.

The half-widths come from predictions of published measurements by fits that had not seen their source
(``assets/prediction_ranges.csv``, made by ``python -m core validate --write``). A scenario outside what was
published is said to be so, and its range widens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.catalog.assets import read_csv

if TYPE_CHECKING:
    from core.analytic.validation.runs import PublishedRun

#: What a number is about; each has a range of its own.
Regime = Literal["decode_single", "decode_parallel", "decode_batch", "prefill", "eager", "processor"]
COVERED: Final[tuple[Regime, ...]] = get_args(Regime)
#: What share of measurements the range should hold, and the quantile that reached it when judged.
SHARE: Final = 0.80
_QUANTILE: Final = 0.84
#: Regimes with fewer residuals borrow from all.
_ENOUGH: Final = 12
#: How much wider the logarithm of the range is outside what was published, for each reason.
_OUTSIDE: Final = 1.5
#: The classes of chips that published rows of each regime are of, and what the regime is about.
KINDS_SEEN: Final[Mapping[Regime, tuple[str, ...]]] = {
    "decode_single": ("hbm", "gddr", "amd", "apple", "lpddr"),
    "decode_parallel": ("hbm", "gddr", "amd"),
    "decode_batch": ("hbm", "gddr", "amd", "apple"),
    "prefill": ("hbm", "gddr", "apple"),
    "eager": ("hbm", "gddr", "lpddr"),
    "processor": ("cpu",),
}
_WORDS: Final[Mapping[Regime, str]] = {
    "decode_single": "one user",
    "decode_parallel": "a split model",
    "decode_batch": "a batch",
    "prefill": "a prompt's time",
    "eager": "an eager framework",
    "processor": "a processor",
}
#: The largest batch and the longest prompt of the published rows.
_LARGEST_BATCH: Final = 2048
_LONGEST_CONTEXT: Final = 32_768
_MOST_CHIPS: Final = 8


@dataclass(frozen=True, slots=True)
class Range:
    """A prediction with its range.

    Attributes:
        low_s, high_s: between them lie four measurements in five, where the data cover the scenario.
        reasons: why it is outside what the data cover; empty where it is inside.
    """

    low_s: float
    high_s: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a range depends on.

    Attributes:
        kind: class of the chip. announced: nobody outside the vendor measured it.
        batch: sequences at once. context: tokens of each. chips: that share the model.
        format_class: as ``efficiency.FormatClass``. experts, state: the model has such layers.
        pipeline: stages.
    """

    kind: str
    announced: bool = False
    batch: float = 1.0
    context: float = 1.0
    chips: int = 1
    pipeline: int = 1
    format_class: str = "16"
    experts: bool = False
    state: bool = False


def half_width(residuals: NDArray[np.float64], everything: NDArray[np.float64]) -> float:
    """The half-width of the log range that holds four in five of like residuals.

    A regime with few residuals takes the wider of its own and of all.
    """
    own = float(np.quantile(np.abs(residuals), _QUANTILE)) if len(residuals) else 0.0
    if len(residuals) >= _ENOUGH:
        return own
    return max(own, float(np.quantile(np.abs(everything), _QUANTILE)))


def regime_of_run(run: PublishedRun) -> Regime:
    """The regime of a published run."""
    if run.prefill:
        return "prefill"
    if run.engine.style == "eager":
        return "eager"
    if run.chip.kind == "cpu":
        return "processor"
    if run.batch != 1:
        return "decode_batch"
    return "decode_parallel" if run.devices > 1 else "decode_single"


def regime(at: Conditions, *, prefill: bool = False) -> Regime:
    """The regime of a scenario.

    >>> regime(Conditions("hbm", batch=32)), regime(Conditions("cpu"))
    ('decode_batch', 'processor')
    """
    if prefill:
        return "prefill"
    if at.kind == "cpu":
        return "processor"
    if at.batch != 1:
        return "decode_batch"
    return "decode_parallel" if at.chips > 1 else "decode_single"


@cache
def half_widths() -> Mapping[str, float]:
    """The half-width of the log range by regime, as it was judged."""
    return {row["regime"]: float(row["half_width"]) for row in read_csv("prediction_ranges")}


def prediction_range(seconds: float, at: Conditions, *, prefill: bool = False) -> Range:
    """The range of a predicted time: ``seconds * exp(-+ half-width)``.

    Each reason that a scenario is outside the published rows widens the logarithm by a half.

    >>> found = prediction_range(0.010, Conditions("hbm"))
    >>> found.low_s < 0.010 < found.high_s, found.reasons
    (True, ())
    >>> prediction_range(0.010, Conditions("other")).reasons
    ('no published measurement is of such an accelerator',)
    """
    found = regime(at, prefill=prefill)
    width = half_widths()[found] * widening(at, found)
    return Range(seconds * math.exp(-width), seconds * math.exp(width), outside(at, found))


def widening(at: Conditions, of: Regime) -> float:
    """How many times as wide the logarithm of the range is as inside the data."""
    return float(_OUTSIDE ** len(outside(at, of)))


def outside(at: Conditions, of: Regime) -> tuple[str, ...]:
    """Why a scenario is outside what was published; empty where it is inside."""
    seen = at.kind == "other" or at.kind in KINDS_SEEN[of]
    checks = {
        f"no published measurement of {_WORDS[of]} is of such a chip": not seen,
        "no published measurement is of such an accelerator": at.kind == "other",
        "the chip is announced and nobody has measured it": at.announced,
        f"no published batch is above {_LARGEST_BATCH:,}": at.batch > _LARGEST_BATCH,
        f"no published context is above {_LONGEST_CONTEXT:,} tokens": at.context > _LONGEST_CONTEXT,
        f"no published row spreads a model over more than {_MOST_CHIPS} chips": at.chips > _MOST_CHIPS,
        "no published row splits layers into stages": at.pipeline > 1,
        "only one published table has 4-bit products": at.format_class == "fp4",
        "few published rows are of a mixture of experts": at.experts,
        "no published row that can be predicted is of layers with a state": at.state,
    }
    return tuple(reason for reason, holds in checks.items() if holds)
