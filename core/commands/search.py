"""``python -m core search``: chips, counts, formats and plans for a model, ranked."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import asdict
from typing import Any, Final

from core.analytic.cost import PRICE_USD, HourlyPrice
from core.analytic.search.candidates import search
from core.analytic.search.ranking import MEASURES, Candidate, front, left_out, ranked
from core.analytic.search.request import RATE, Choices, Wanted
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.near_names import spelled
from core.catalog.scenario import LIMITS, Scenario
from core.commands.arguments import name_of, real_number, whole_number
from core.commands.model import find_model
from core.errors import ScenarioError
from core.units import format_seconds, significant

_MOST_SHOWN = 100
#: Seconds that somebody may be willing to wait: from a nanosecond to a month.
SECONDS: Final = (1e-9, 2_592_000.0)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    default = Wanted()
    parser.add_argument(
        "--model", default=Scenario().model, help="a catalogue id, a config.json, or a folder"
    )
    for option, name, meaning in (
        ("--input", "input_tokens", "prompt tokens of a request"),
        ("--output", "output_tokens", "tokens written for it"),
    ):
        parser.add_argument(
            option,
            dest=name,
            metavar="N",
            type=whole_number(*LIMITS[name]),
            default=getattr(default, name),
            help=meaning,
        )
    for option, limits, unit, meaning in (
        ("--ttft", SECONDS, "S", "seconds to the first token at most"),
        ("--tpot", SECONDS, "S", "seconds for each further token at most"),
        ("--rate", RATE, "R", "requests that arrive in a second; one full replica unless given"),
    ):
        parser.add_argument(option, type=real_number(*limits), metavar=unit, help=meaning)
    _add_choices(parser)


def _add_choices(parser: ArgumentParser) -> None:
    parser.add_argument("--by", choices=MEASURES, default="cost", help="what to rank by")
    parser.add_argument(
        "--accelerator",
        action="append",
        type=name_of(accelerators),
        metavar="A",
        help="look at this chip only; may be given again",
    )
    parser.add_argument(
        "--price",
        action="append",
        type=_price,
        metavar="A=USD",
        default=[],
        help="dollars for an hour of a chip, in place of the list's; may be given again",
    )
    parser.add_argument(
        "--most",
        type=whole_number(1, _MOST_SHOWN),
        default=10,
        metavar="N",
        help="candidates shown",
    )


def _price(text: str) -> tuple[str, float]:
    name, equals, usd = text.partition("=")
    if not equals:
        raise ArgumentTypeError(f"must have the form CHIP=DOLLARS, as in l40s=0.80; got {text[:40]!r}")
    return spelled(name, accelerators()), real_number(*PRICE_USD)(usd)


def run(args: Namespace) -> dict[str, Any]:
    """Search.

    Raises:
        ConfigError, ScenarioError: the model or a chip is not known.
    """
    wanted = Wanted(
        args.input_tokens,
        args.output_tokens,
        args.ttft or math.inf,
        args.tpot or math.inf,
        args.rate,
    )
    prices = {accelerator(name).id: HourlyPrice(usd) for name, usd in args.price}
    choices = Choices(prices=prices)
    if args.accelerator:
        chips = tuple(accelerator(name) for name in dict.fromkeys(args.accelerator))
        choices = Choices(chips=chips, prices=prices)
    found = search(find_model(args.model), wanted, choices)
    best = ranked(found, args.by, args.most)
    if not best and not found.good.any():
        reasons = ", ".join(f"{why} {number:,}" for why, number in left_out(found).items() if number)
        raise ScenarioError(
            f"None of the {found.size:,} candidates does what is asked ({reasons}). Allow more time, or a "
            "smaller model."
        )
    return {
        "candidates": found.size,
        "feasible": int(found.good.sum()),
        "by": args.by,
        "best": [_json(one, choices) for one in best],
        "front": [_json(one, choices) for one in front(found)],
        "left_out": left_out(found),
        "notes": _notes(),
    }


def _notes() -> list[str]:
    return [
        "Times are predictions from data sheets; see `python -m core validate` for how far off they are.",
        "Prices are on-demand lists of the day that stands beside them, in dollars for each chip; they move "
        "within weeks.",
        "Chips whose memory for software nobody published, and announced ones, are left out.",
    ]


def _json(one: Candidate, choices: Choices) -> dict[str, Any]:
    price = choices.price(one.chip)
    return {
        "accelerator": one.chip.id,
        "count": one.chips,
        "replicas": one.replicas,
        "plan": {key: value for key, value in asdict(one.plan).items() if value != 1},
        "weights": one.weights,
        "kv": one.cache,
        "batch": one.batch,
        "ttft_s": one.ttft_s,
        "tpot_s": one.tpot_s,
        "requests_per_s": one.requests_per_s,
        "memory_margin": one.memory_margin,
        "usd_per_million_tokens": one.usd_per_million,
        "price": None
        if price is None
        else {"usd_per_hour": price.usd, "date": price.date, "note": price.note()},
    }


def render(result: dict[str, Any]) -> str:
    """Write the same result for a person."""
    lines = [
        f"{result['feasible']:,} of {result['candidates']:,} candidates do what is asked; "
        f"best by {result['by']}:",
        "",
        _line("chip", "chips", "plan", "weights", "cache", "batch", "TTFT", "TPOT", "free", "$/M tokens"),
    ]
    lines += [_row(one) for one in result["best"]]
    lines += ["", "Cheapest to fastest, none beaten in both:", *(_row(one) for one in result["front"][:10])]
    old = [
        one["price"]["note"]
        for one in result["best"]
        if one["price"] and "may have moved" in one["price"]["note"]
    ]
    return "\n".join([*lines, "", *(f"Note: {note}" for note in [*result["notes"], *dict.fromkeys(old)])])


def _row(one: dict[str, Any]) -> str:
    usd = one["usd_per_million_tokens"]
    return _line(
        one["accelerator"],
        f"{one['count']:,}",
        " ".join(f"{key}{value}" for key, value in one["plan"].items()) or "one chip",
        one["weights"],
        one["kv"],
        f"{one['batch']:,}",
        format_seconds(one["ttft_s"]),
        format_seconds(one["tpot_s"]),
        f"{one['memory_margin']:.0%}",
        "unknown" if usd is None else significant(usd),
    )


def _line(name: str, *cells: str) -> str:
    return f"{name:26}" + "".join(f" {cell:>11}" for cell in cells)
