"""What a token costs in money and in energy: time on chips, times a price or a power.

Both follow from the two times of ``answer.speed``: the prefill, which reads the prompt and gives the
first token, and the decode steps after it. A batch shares every step, so a larger batch makes tokens
cheaper until its steps take longer in proportion. What is idle is paid for as well: a server that is busy
for a share ``load`` of the hours that it is paid for costs ``1 / load`` times as much a token, and its chips
draw their idle power for ``(1 - load) / load`` seconds for each busy one.

Left out: the host, the network, cooling, discounts for input that is cached, and people.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.catalog.accelerator import Accelerator
from core.errors import ScenarioError
from core.units import Number

_SECONDS_PER_HOUR: Final = 3600.0
_MILLION: Final = 1e6
#: Smallest and largest price of a chip for an hour; far outside lie typing errors, and numbers that overflow.
PRICE_USD: Final = (0.0001, 1_000_000.0)
#: Smallest and largest share of the paid time in which chips are busy: at a thousandth they hardly ever are.
LOAD: Final = (0.001, 1.0)
#: Days after which a price is called old: lists of one product moved by a fifth within ten weeks.
OLD_AFTER_DAYS: Final = 183
#: Shares of a chip's stated power that it draws: prompts reach it, decoding stays below, waiting is little.
#: https://arxiv.org/abs/2308.12908 (power of inference clusters, by phase), read 2026-11-29
PREFILL_SHARE: Final = 1.0
DECODE_SHARE: Final = 0.7
IDLE_SHARE: Final = 0.15


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """What one chip costs for an hour.

    Attributes:
        usd: the price. date: when it was read, ISO; empty where the visitor typed it. source: where.
    """

    usd: float
    date: str = ""
    source: str = "typed in by you"

    def __post_init__(self) -> None:
        low, high = PRICE_USD
        if not low <= self.usd <= high:  # also true for a NaN
            raise ScenarioError(
                f"A price must be from {low} to {high:,.0f} dollars an hour; got {self.usd:g}. Give what one "
                "chip costs for an hour."
            )

    def age_days(self, today: datetime.date | None = None) -> int | None:
        """Days since it was read; None where no date is known."""
        if not self.date:
            return None
        return ((today or datetime.date.today()) - datetime.date.fromisoformat(self.date)).days

    def note(self, today: datetime.date | None = None) -> str:
        """The sentence that belongs beside any number made with it.

        >>> HourlyPrice(2.5, "2026-11-09", "a list").note(datetime.date(2026, 11, 29))
        '2.5 dollars an hour for each chip, read on 2026-11-09.'
        >>> "may have moved" in HourlyPrice(2.5, "2024-12-23", "a list").note(datetime.date(2026, 11, 29))
        True
        """
        text = f"{self.usd:.3g} dollars an hour for each chip"
        age = self.age_days(today)
        if age is None:
            return f"{text}, {self.source}."
        if age > OLD_AFTER_DAYS:
            return f"{text}, read on {self.date}, {age // 30} months ago: it may have moved. Type in today's."
        return f"{text}, read on {self.date}."


def list_price(accelerator: Accelerator) -> HourlyPrice | None:
    """The geometric middle of the lists that were found, with the older date; None where none was found.

    >>> from core.catalog.accelerators import accelerator
    >>> round(list_price(accelerator("mi300x")).usd, 2), list_price(accelerator("gb300"))
    (3.0, None)
    """
    found = accelerator.price
    if found is None:
        return None
    middle = math.sqrt(found.low_usd_per_hour * found.high_usd_per_hour)
    return HourlyPrice(middle, min(found.low_date, found.high_date), found.source)


@dataclass(frozen=True, slots=True)
class Power:
    """Watts of one chip: while it reads prompts, while it decodes, and while it waits."""

    prefill_w: float
    decode_w: float
    idle_w: float

    def __post_init__(self) -> None:
        if not 0 <= self.idle_w <= min(self.prefill_w, self.decode_w) < math.inf:
            raise ScenarioError(
                "Power must be finite and at least the idle power; got "
                f"{self.prefill_w}, {self.decode_w} and {self.idle_w} W. Give watts of one chip."
            )


def usual_power(accelerator: Accelerator) -> Power | None:
    """Shares of the stated power; None where a vendor states none.

    >>> from core.catalog.accelerators import accelerator
    >>> round(usual_power(accelerator("h100-sxm-80gb")).decode_w), usual_power(accelerator("apple-m2-ultra"))
    (490, None)
    """
    stated = accelerator.power_w
    if stated is None:
        return None
    return Power(PREFILL_SHARE * stated, DECODE_SHARE * stated, IDLE_SHARE * stated)


def drawn_power_w(power_w: float, shares: Mapping[str, float], busy: Mapping[str, float]) -> float:
    """Mean power of a chip whose parts are busy for some of the time: ``power * sum(share * busy)``.

    Args:
        power_w: all parts at work.
        shares: each part's share of that power, as fractions that come to at most one.
        busy: which fraction of the time a part works; all of it where it is not named (leakage).

    Raises:
        ScenarioError: a fraction is not from 0 to 1, or the shares come to more than one (percent).

    >>> drawn_power_w(1000, {"static": 0.3, "compute": 0.4}, {"compute": 0.5})
    500.0
    """
    fractions = (*shares.values(), *busy.values())
    whole = math.fsum(shares.values())
    if not all(0 <= fraction <= 1 for fraction in fractions) or whole > 1 + 1e-9:
        raise ScenarioError(
            "Shares of a power must be fractions from 0 to 1 that come to at most one; got "
            f"{', '.join(f'{fraction:g}' for fraction in fractions)}. Divide percentages by 100."
        )
    return power_w * math.fsum(share * busy.get(part, 1.0) for part, share in shares.items())


# --- Per token ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A batch of equal requests on some chips, and how long its parts take; arrays broadcast.

    Attributes:
        ttft_s: the prefill of the batch. tpot_s: one decode step; anything where the answer is one token.
        batch: sequences. input_tokens, output_tokens: of each. chips: that serve it.
        load: share of the paid time in which they do so.
    """

    ttft_s: Number
    tpot_s: Number
    batch: Number
    input_tokens: Number
    output_tokens: Number
    chips: Number = 1
    load: Number = 1.0

    def __post_init__(self) -> None:
        share = np.asarray(self.load, np.float64)
        low, high = LOAD
        wrong = share[~((share >= low) & (share <= high))]  # a NaN is wrong as well
        if wrong.size:
            raise ScenarioError(
                f"The load must be from {low} to {high:g} (busy all the time); got {wrong[0]:g}. Give the "
                "share of the paid time in which chips work."
            )

    @property
    def decode_s(self) -> NDArray[np.float64]:
        """All steps after the first token."""
        steps = np.asarray(self.output_tokens, np.float64) - 1
        return np.asarray(np.where(steps > 0, steps * self.tpot_s, 0.0))

    @property
    def chip_seconds(self) -> Mapping[str, NDArray[np.float64]]:
        """Busy seconds of all chips together for each input and output token."""
        chips, batch = np.asarray(self.chips, np.float64), np.asarray(self.batch, np.float64)
        return {
            "input": np.asarray(chips * self.ttft_s / (batch * self.input_tokens)),
            "output": np.asarray(chips * self.decode_s / (batch * self.output_tokens)),
        }


@dataclass(frozen=True, slots=True, eq=False)
class TokenCost:
    """Dollars; of the sweep's shape.

    Attributes:
        input_usd, output_usd: for a million tokens. request_usd: for one request.
    """

    input_usd: NDArray[np.float64]
    output_usd: NDArray[np.float64]
    request_usd: NDArray[np.float64]


def token_cost(work: Work, price: HourlyPrice) -> TokenCost:
    """What tokens cost: chips * seconds / tokens * price / load, input and output apart.

    The prefill is charged to the prompt's tokens and the steps after it to the answer's. The two differ by
    the batch effect: a prefill's time grows with its tokens, a step's hardly.

    >>> served = Work(ttft_s=0.1, tpot_s=0.01, batch=1, input_tokens=1000, output_tokens=101)
    >>> found = token_cost(served, HourlyPrice(3.6))
    >>> round(float(found.input_usd), 3), round(float(found.output_usd), 3)   # 0.001 dollars a second
    (0.1, 9.901)
    """
    second = price.usd / _SECONDS_PER_HOUR / np.asarray(work.load, np.float64)
    seconds = work.chip_seconds
    whole = seconds["input"] * work.input_tokens + seconds["output"] * work.output_tokens
    return TokenCost(
        input_usd=np.asarray(seconds["input"] * second * _MILLION),
        output_usd=np.asarray(seconds["output"] * second * _MILLION),
        request_usd=np.asarray(whole * second),
    )


@dataclass(frozen=True, slots=True, eq=False)
class TokenEnergy:
    """Joules; of the sweep's shape.

    Attributes:
        input_j, output_j: for one token, the idle share included. idle_share: of all energy, what is drawn
            while nothing is served.
    """

    input_j: NDArray[np.float64]
    output_j: NDArray[np.float64]
    idle_share: NDArray[np.float64]


def token_energy(work: Work, power: Power) -> TokenEnergy:
    """Energy of tokens: chips * (busy power + idle power * (1 - load) / load) * seconds / tokens.

    >>> served = Work(ttft_s=0.1, tpot_s=0.01, batch=1, input_tokens=1000, output_tokens=101, load=0.5)
    >>> found = token_energy(served, Power(700.0, 490.0, 105.0))
    >>> round(float(found.output_j), 3), round(float(found.idle_share), 2)   # (490 + 105) * 1 s / 101
    (5.891, 0.17)
    """
    load = np.asarray(work.load, np.float64)
    waiting_w = power.idle_w * (1 - load) / load
    seconds = work.chip_seconds
    used = seconds["input"] * work.input_tokens, seconds["output"] * work.output_tokens
    idle = (used[0] + used[1]) * waiting_w
    whole = used[0] * power.prefill_w + used[1] * power.decode_w + idle
    return TokenEnergy(
        input_j=np.asarray(seconds["input"] * (power.prefill_w + waiting_w)),
        output_j=np.asarray(seconds["output"] * (power.decode_w + waiting_w)),
        idle_share=np.asarray(idle / whole),
    )
