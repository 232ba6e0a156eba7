"""``python -m core plan``: memory, time and limits of a model on an accelerator."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict, replace
from typing import Any, Final

from core.analytic.cost import LOAD, PRICE_USD, HourlyPrice, TokenCost
from core.analytic.datasheet import machine_from
from core.analytic.memory import Footprint
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import PassCost, Plan, plan
from core.analytic.plan_on_chips import PlanOnChips, parallel_plan, plan_on_chips
from core.analytic.plan_value import PlanValue, value_of
from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerator, accelerators, links
from core.catalog.scenario import LIMITS, Scenario
from core.commands.arguments import add_formats, name_of, real_number, whole_number
from core.commands.model import find_model
from core.lab.this_computer import this_computer
from core.units import format_count, format_gb, format_gib, format_seconds, format_si, significant

_COUNTS: Final = {
    "count": ("--count", "accelerators; as many as the plan needs unless given"),
    "batch": ("--batch", "sequences served together"),
    "input_tokens": ("--input", "prompt tokens of each"),
    "output_tokens": ("--output", "tokens written for each"),
    "tp": ("--tp", "tensor-parallel degree"),
    "pp": ("--pp", "pipeline-parallel degree"),
    "ep": ("--ep", "expert-parallel degree"),
}
#: Degrees that only this command has: option, largest value, meaning.
_MORE: Final = {
    "dp": (
        1024,
        "data-parallel degree: replicas; as many as the count allows unless given",
    ),
    "cp": (64, "context-parallel degree: chips among tp that share the tokens of a cache"),
    "sp": (64, "sequence-parallel degree: chips that share the tokens of norms; 1 or tp"),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    default = Scenario()
    parser.add_argument("--model", default=default.model, help="a catalogue id, a config.json, or a folder")
    parser.add_argument(
        "--accelerator",
        type=name_of(lambda: [*accelerators(), THIS_COMPUTER]),
        default=default.accelerator,
        metavar="A",
        help="a data sheet; `python -m core list accelerators` has all; or this-computer, as `bench` "
        "measured it, on which --count processes share a model",
    )
    add_formats(parser)
    for name, (option, meaning) in _COUNTS.items():
        parser.add_argument(
            option,
            dest=name,
            metavar="N",
            type=whole_number(*LIMITS[name]),
            default=None if name == "count" else getattr(default, name),
            help=meaning,
        )
    for name, (most, meaning) in _MORE.items():
        parser.add_argument(f"--{name}", metavar="N", type=whole_number(1, most), help=meaning)
    parser.add_argument(
        "--network",
        type=name_of(links),
        choices=sorted(links()),
        metavar="LINK",
        help="what joins more chips than their link does, for instance infiniband-ndr",
    )
    parser.add_argument(
        "--price",
        metavar="USD",
        type=real_number(*PRICE_USD),
        help="of one chip for an hour; from dated lists unless given",
    )
    parser.add_argument(
        "--load",
        metavar="SHARE",
        type=real_number(*LOAD),
        default=1.0,
        help="of the paid time that chips are busy",
    )


def run(args: Namespace) -> dict[str, Any]:
    """Plan the scenario.

    Raises:
        ConfigError, FormatError, ScenarioError: the model, a format or the accelerator is not known.
    """
    share = args.tp * args.pp
    counts = {name: getattr(args, name) for name in _COUNTS}
    counts["count"] = share * (args.dp or 1) if args.count is None else args.count
    scenario = Scenario(
        model=args.model, accelerator=args.accelerator, weights=args.weights, kv=args.kv, **counts
    )
    model = find_model(args.model)
    chip = None if args.accelerator == THIS_COMPUTER else accelerator(args.accelerator)
    machine = this_computer(args.weights, scenario.count) if chip is None else machine_from(chip)
    if args.network is not None:
        machine = replace(machine, network=links()[args.network])
    usual = parallel_plan(scenario)
    parallel = replace(usual, dp=args.dp or usual.dp, cp=args.cp or 1, sp=args.sp or 1)
    on_chips = plan_on_chips(scenario, model, machine, parallel)
    alone = parallel.tp * parallel.pp * parallel.ep == 1 and parallel.chips == scenario.count
    found = plan(scenario, model, machine) if alone else on_chips.plan
    price = None if args.price is None else HourlyPrice(args.price)
    value = value_of(found, scenario, model, machine, chip, plan=parallel, price=price, load=args.load)
    return to_json(found, on_chips, value)


def to_json(found: Plan, on_chips: PlanOnChips, value: PlanValue) -> dict[str, Any]:
    """A plan as the command line prints it: bytes are integers, times seconds."""
    return {
        "fits": found.fits,
        "memory": None if found.memory is None else _memory(found.memory),
        "prefill": _pass(found.prefill),
        "decode": _pass(found.decode),
        "ttft_s": found.ttft_s,
        "tpot_s": found.tpot_s,
        "e2e_s": found.end_to_end_s,
        "tokens_per_s": found.tokens_per_s,
        "usd_per_million_tokens": None if value.cost is None else _dollars(value.cost, found.tpot_s),
        "joules_per_token": None
        if value.energy is None or found.tpot_s is None
        else float(value.energy.output_j),
        "range": _ranges(value),
        "violations": list(found.violations),
        "notes": [*found.notes, *value.notes],
        "parallel": _parallel(on_chips),
    }


def _dollars(cost: TokenCost, tpot_s: float | None) -> dict[str, float | None]:
    """Of an answer of one token nothing is written after the prefill: it has no price of its own."""
    return {"input": float(cost.input_usd), "output": None if tpot_s is None else float(cost.output_usd)}


def _ranges(value: PlanValue) -> dict[str, list[float] | None] | None:
    """Low and high of each time; None where there is no time."""
    if value.ttft is None:
        return None
    spans = {"ttft_s": value.ttft, "tpot_s": value.tpot}
    return {name: None if span is None else [span.low_s, span.high_s] for name, span in spans.items()}


def _parallel(on_chips: PlanOnChips) -> dict[str, Any]:
    """The split, what a chip of each stage does, and the nearest plans where something is wrong."""
    return {
        **_degrees(on_chips.parallel),
        "stages": [
            {
                "layers": use.layers,
                "memory": _memory(use.memory),
                "cache": {f"{name}_bytes": int(size) for name, size in asdict(use.cache).items()},
                "prefill_s": use.prefill_s,
                "decode_s": use.decode_s,
                "idle_share": use.idle_share,
                "link_bytes": None if use.link_bytes is None else int(use.link_bytes),
            }
            for use in on_chips.stages
        ],
        "nearest": [_degrees(found) for found in on_chips.nearest],
    }


def _degrees(found: ParallelPlan) -> dict[str, int]:
    names = ("tp", "pp", "ep", "dp", "cp", "sp", "chips")
    return {name: getattr(found, name) for name in names}


def _memory(need: Footprint) -> dict[str, int | None]:
    return {
        "capacity_bytes": None if need.capacity_bytes is None else int(need.capacity_bytes),
        "weights_bytes": int(need.weights_bytes),
        "kv_bytes": int(need.kv_bytes),
        "activation_bytes": int(need.activation_bytes),
        "overhead_bytes": int(need.overhead_bytes),
    }


def _pass(cost: PassCost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {"flops": cost.flops, "bytes": int(cost.bytes), "time_s": cost.time_s, "bound": cost.limit}


def render(result: dict[str, Any]) -> str:
    """Write the same result for a person."""
    lines = _render_memory(result["memory"], result["fits"]) if result["memory"] else []
    lines += _render_cache(result["parallel"]["stages"])
    for name in ("prefill", "decode"):
        if result[name]:
            lines.append(_render_pass(name, result[name]))
    spans = result["range"] or {}
    for label, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("end to end", "e2e_s")):
        if result[key] is not None:
            lines.append(f"{label:12}{format_seconds(result[key])}{_render_span(spans.get(key))}")
    if result["tokens_per_s"] is not None:
        lines.append(f"{'rate':12}{_rate(result)}")
    lines += _render_value(result)
    lines += _render_stages(result["parallel"])
    lines += _render_problems(result["violations"])
    lines += [f"Would work: {_words(found)}" for found in result["parallel"]["nearest"]]
    return "\n".join([*lines, *(f"Note: {note}" for note in result["notes"])])


def _rate(result: dict[str, Any]) -> str:
    """Whose tokens a rate counts: of one replica's users together, and of all replicas."""
    rate, replicas = result["tokens_per_s"], result["parallel"]["dp"]
    users = round(rate * result["tpot_s"])  # tokens in a step are the sequences of the batch
    each = f"{significant(rate)} tokens/s"
    if replicas > 1:
        whose = f"{replicas:,} replicas" if users == 1 else f"{replicas:,} replicas of {users:,} users"
        return f"{each} each, {significant(rate * replicas)} together ({whose})"
    return each if users == 1 else f"{each} of {users:,} users together, {significant(rate / users)} each"


def _render_problems(sentences: list[str]) -> list[str]:
    """What is wrong; several reasons against one degree stand together."""
    against = [sentence for sentence in sentences if "tensor-parallel degree" in sentence]
    if len(against) < 2:
        return [f"Problem: {sentence}" for sentence in sentences]
    others = [f"Problem: {sentence}" for sentence in sentences if sentence not in against]
    lines = [f"Problem: the tensor-parallel degree, for {len(against)} reasons:"]
    return [*lines, *(f"  - {sentence}" for sentence in against), *others]


def _render_span(span: list[float] | None) -> str:
    return f" ({format_seconds(span[0])} to {format_seconds(span[1])})" if span else ""


def _render_value(result: dict[str, Any]) -> list[str]:
    """What tokens cost in money and energy, where that is known."""
    lines = []
    dollars, joules = result["usd_per_million_tokens"], result["joules_per_token"]
    if dollars is not None:
        each = ", ".join(f"{name} {significant(usd)}" for name, usd in dollars.items() if usd is not None)
        alone = "" if dollars["output"] is not None else "; no time per token, so none of written ones"
        lines.append(f"{'cost':12}{each} dollars a million tokens{alone}")
    if joules is not None:
        lines.append(f"{'energy':12}{significant(joules)} J a written token")
    return lines


def _render_stages(split: dict[str, Any]) -> list[str]:
    """The plan, and a line a stage where there are several."""
    if split["chips"] == 1:
        return []
    lines = [f"{'plan':12}{_words(split)}"]
    for index, stage in enumerate(split["stages"] if split["pp"] > 1 else ()):
        held = sum(size for key, size in stage["memory"].items() if key != "capacity_bytes")
        line = f"{f'stage {index + 1}':12}{stage['layers']} layers, {format_gib(held)} a chip"
        if stage["idle_share"] is not None:
            line += f", idle {stage['idle_share']:.0%} of a decode round"
        lines.append(line)
    return lines


def _words(split: dict[str, int]) -> str:
    more = [name for name in ("cp", "sp") if split[name] > 1]
    degrees = ", ".join(f"{name} {split[name]}" for name in ("tp", "pp", "ep", "dp", *more))
    chips = split["chips"]
    return f"{degrees}: {format_count(chips, 'chip')}"


def _render_memory(memory: dict[str, int | None], fits: bool | None) -> list[str]:
    parts = {key: value for key, value in memory.items() if key != "capacity_bytes" and value is not None}
    capacity = memory["capacity_bytes"]
    verdict = {True: "fits", False: "does not fit", None: "unknown whether it fits"}[fits]
    offered = "an unknown capacity" if capacity is None else format_gib(capacity)
    listed = ", ".join(f"{key.removesuffix('_bytes')} {format_gib(value)}" for key, value in parts.items())
    return [f"{'memory':12}{format_gib(sum(parts.values()))} of {offered}: {verdict} ({listed})"]


def _render_cache(stages: list[dict[str, Any]]) -> list[str]:
    """The cache of the chip that holds most of it, in every regime."""
    if not stages:
        return []
    cache = max((stage["cache"] for stage in stages), key=lambda sizes: sizes["resident_bytes"])
    words = {
        "resident_bytes": "by its tokens",
        "paged_bytes": "in blocks",
        "paged_worst_bytes": "at worst in a paged engine",
        "contiguous_bytes": "reserved as one buffer",
    }
    listed = ", ".join(f"{format_gib(cache[name])} {meaning}" for name, meaning in words.items())
    return [f"{'cache':12}{listed}"]


def _render_pass(name: str, cost: dict[str, Any]) -> str:
    work = f"{format_si(cost['flops'])}FLOP, {format_gb(cost['bytes'])}"
    if cost["time_s"] is None:
        return f"{name:12}{work}"
    return f"{name:12}{work}: {format_seconds(cost['time_s'])}, waits for {cost['bound']}"
