"""The arithmetic behind cost and energy, laid open with today's values.

The formulas are those of ``core.analytic.cost``; a test runs every program and holds it against them.
"""

from __future__ import annotations

from typing import Final

from core.analytic.cost import HourlyPrice, usual_power
from core.analytic.plan_value import PlanValue
from core.errors import ScenarioError
from core.ui.planner.found import Found
from core.ui.worked_number import Input, WorkedNumber
from core.units import format_seconds, significant

NAMES: Final = ("Input", "Output", "Request", "Energy")
_READING: Final = "batch × input tokens"
_WRITING: Final = "batch × output tokens"


def worked(found: Found, worth: PlanValue, load: float, name: str) -> WorkedNumber:
    """Work one of the tiles out.

    Raises:
        ScenarioError: the number is unknown here.
    """
    if name == "Energy":
        return _energy(found, worth, load)
    price = worth.price
    if price is None or worth.cost is None:
        raise ScenarioError(
            f"A cost must rest on a price; no dated one of {found.machine.name} is known. Type one in."
        )
    if name == "Request":
        return _request(found, worth)
    return _tokens(found, worth, price, load, name)


def _tokens(found: Found, worth: PlanValue, price: HourlyPrice, load: float, name: str) -> WorkedNumber:
    """A million tokens read or written: seconds of all chips, times the price of a second."""
    reads = name == "Input"
    cost = worth.cost
    usd = 0.0 if cost is None else float(cost.input_usd if reads else cost.output_usd)
    scenario, seconds = found.case.scenario, _prefill_s(found) if reads else _steps_s(found)
    tokens = scenario.batch * (scenario.input_tokens if reads else scenario.output_tokens)
    chips = _chips(found)
    what = "the prefill of the batch" if reads else "all steps after the first token"
    return WorkedNumber(
        name=f"{name.lower()} tokens",
        formula="cost = chips × time × price ÷ 3,600 ÷ busy share ÷ tokens × 1,000,000",
        substituted=f"{chips} × {format_seconds(seconds)} × ${significant(price.usd)} ÷ 3,600 ÷ {load:g} ÷ "
        f"{tokens:,} × 1,000,000",
        result=f"${significant(usd)} for a million tokens {'read' if reads else 'written'}",
        inputs=(
            _chips_input(chips),
            Input("time", what, format_seconds(seconds), "TTFT" if reads else "TPOT × (output tokens − 1)"),
            _price(price),
            Input("busy share", "of the hours that are paid for", f"{load:g}", "your control"),
            Input("tokens", _READING if reads else _WRITING, f"{tokens:,}", "the scenario"),
        ),
        python=_program(
            {
                "chips": chips,
                "time_s": seconds,
                "usd_per_hour": price.usd,
                "busy_share": load,
                "tokens": tokens,
            },
            "usd = chips * time_s * usd_per_hour / 3600 / busy_share / tokens * 1e6",
            'print(f"{usd:.4g} dollars for a million tokens")',
        ),
        note="A step's time hardly grows with the batch, so a larger batch makes written tokens cheaper. "
        "Left out: the host, the network, and discounts for input that is cached.",
    )


def _request(found: Found, worth: PlanValue) -> WorkedNumber:
    scenario, cost = found.case.scenario, worth.cost
    read, written, whole = (
        (0.0, 0.0, 0.0)
        if cost is None
        else (float(cost.input_usd), float(cost.output_usd), float(cost.request_usd))
    )
    return WorkedNumber(
        name="request",
        formula="request = (input tokens × input cost + output tokens × output cost) ÷ 1,000,000",
        substituted=f"({scenario.input_tokens:,} × ${significant(read)} + {scenario.output_tokens:,} × "
        f"${significant(written)}) ÷ 1,000,000",
        result=f"${significant(whole)} for one request",
        inputs=(
            Input("input tokens", "of the prompt", f"{scenario.input_tokens:,}", "the scenario"),
            Input("input cost", "of a million tokens", f"${significant(read)}", "the number beside it"),
            Input("output tokens", "of the answer", f"{scenario.output_tokens:,}", "the scenario"),
            Input("output cost", "of a million tokens", f"${significant(written)}", "the number beside it"),
        ),
        python=_program(
            {
                "input_tokens": scenario.input_tokens,
                "input_usd": read,
                "output_tokens": scenario.output_tokens,
                "output_usd": written,
            },
            "usd = (input_tokens * input_usd + output_tokens * output_usd) / 1e6",
            'print(f"{usd:.4g} dollars for one request")',
        ),
    )


def _energy(found: Found, worth: PlanValue, load: float) -> WorkedNumber:
    power = usual_power(found.chip)
    if power is None or worth.energy is None:
        raise ScenarioError(
            f"Energy must rest on a power; what {found.machine.name} draws is not stated. Choose another."
        )
    scenario, seconds = found.case.scenario, _steps_s(found)
    tokens = scenario.batch * scenario.output_tokens
    joules = float(worth.energy.output_j)
    return WorkedNumber(
        name="energy",
        formula="energy = chips × (decode power + idle power × (1 − busy share) ÷ busy share) × time "
        "÷ tokens",
        substituted=f"{_chips(found)} × ({power.decode_w:.0f} W + {power.idle_w:.0f} W × (1 − {load:g}) ÷ "
        f"{load:g}) × {format_seconds(seconds)} ÷ {tokens:,}",
        result=f"{significant(joules)} J for each token written",
        inputs=(
            _chips_input(_chips(found)),
            Input(
                "decode power", "of a chip, a share of what is stated", f"{power.decode_w:.0f} W", "assumed"
            ),
            Input("idle power", "while nothing is served", f"{power.idle_w:.0f} W", "assumed"),
            Input("busy share", "of the hours that are paid for", f"{load:g}", "your control"),
            Input("time", "all steps after the first token", format_seconds(seconds), "TPOT × steps"),
            Input("tokens", _WRITING, f"{tokens:,}", "the scenario"),
        ),
        python=_program(
            {
                "chips": _chips(found),
                "decode_w": power.decode_w,
                "idle_w": power.idle_w,
                "busy_share": load,
                "time_s": seconds,
                "tokens": tokens,
            },
            "joules = chips * (decode_w + idle_w * (1 - busy_share) / busy_share) * time_s / tokens",
            'print(f"{joules:.4g} J for each token written")',
        ),
        note="Left out: the host and cooling.",
    )


def _chips(found: Found) -> int:
    """Chips of one replica, which serves the batch."""
    return found.case.scenario.tp * found.case.scenario.pp


def _chips_input(chips: int) -> Input:
    return Input("chips", "that serve the batch together", f"{chips}", "the scenario's TP × PP")


def _prefill_s(found: Found) -> float:
    return found.plan.ttft_s or 0.0


def _steps_s(found: Found) -> float:
    """Seconds of all steps after the first token."""
    return (found.case.scenario.output_tokens - 1) * (found.plan.tpot_s or 0.0)


def _price(price: HourlyPrice) -> Input:
    address = price.source if price.source.startswith("https://") else ""
    source = f"lists, read {price.date}" if price.date else price.source
    return Input("price", "dollars an hour for a chip", f"${significant(price.usd)}", source, address)


def _program(values: dict[str, float], line: str, show: str) -> str:
    return "\n".join([*(f"{name} = {value:.12g}" for name, value in values.items()), line, show])
