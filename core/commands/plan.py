"""``python -m core plan``: memory, time and limits of a model on an accelerator."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any, Final

from core.analytic.datasheet import machine_from
from core.analytic.memory import Footprint
from core.analytic.plan import PassCost, Plan, plan
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.scenario import LIMITS, Scenario
from core.commands.arguments import add_formats, whole_number
from core.commands.model import find_model
from core.units import format_gb, format_gib, format_seconds, format_si, significant

_COUNTS: Final = {
    "count": ("--count", "accelerators"),
    "batch": ("--batch", "sequences served together"),
    "input_tokens": ("--input", "prompt tokens of each"),
    "output_tokens": ("--output", "tokens written for each"),
    "tp": ("--tp", "tensor-parallel degree"),
    "pp": ("--pp", "pipeline-parallel degree"),
    "ep": ("--ep", "expert-parallel degree"),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    default = Scenario()
    parser.add_argument("--model", default=default.model, help="a catalogue id, a config.json, or a folder")
    parser.add_argument(
        "--accelerator", default=default.accelerator, help=f"one of {', '.join(accelerators())}"
    )
    add_formats(parser)
    for name, (option, meaning) in _COUNTS.items():
        parser.add_argument(
            option,
            dest=name,
            metavar="N",
            type=whole_number(*LIMITS[name]),
            default=getattr(default, name),
            help=meaning,
        )


def run(args: Namespace) -> dict[str, Any]:
    """Plan the scenario.

    Raises:
        ConfigError, FormatError, ScenarioError: the model, a format or the accelerator is not known.
    """
    scenario = Scenario(
        model=args.model,
        accelerator=args.accelerator,
        weights=args.weights,
        kv=args.kv,
        **{name: getattr(args, name) for name in _COUNTS},
    )
    machine = machine_from(accelerator(args.accelerator))
    return to_json(plan(scenario, find_model(args.model), machine))


def to_json(found: Plan) -> dict[str, Any]:
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
        "usd_per_million_tokens": None,
        "joules_per_token": None,
        "range": None,
        "violations": list(found.violations),
        "notes": list(found.notes),
    }


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
    for name in ("prefill", "decode"):
        if result[name]:
            lines.append(_render_pass(name, result[name]))
    for label, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("end to end", "e2e_s")):
        if result[key] is not None:
            lines.append(f"{label:12}{format_seconds(result[key])}")
    if result["tokens_per_s"] is not None:
        lines.append(f"{'rate':12}{significant(result['tokens_per_s'])} tokens/s")
    lines += [f"Problem: {sentence}" for sentence in result["violations"]]
    return "\n".join([*lines, *(f"Note: {note}" for note in result["notes"])])


def _render_memory(memory: dict[str, int | None], fits: bool | None) -> list[str]:
    parts = {key: value for key, value in memory.items() if key != "capacity_bytes" and value is not None}
    capacity = memory["capacity_bytes"]
    verdict = {True: "fits", False: "does not fit", None: "unknown whether it fits"}[fits]
    offered = "an unknown capacity" if capacity is None else format_gib(capacity)
    listed = ", ".join(f"{key.removesuffix('_bytes')} {format_gib(value)}" for key, value in parts.items())
    return [f"{'memory':12}{format_gib(sum(parts.values()))} of {offered}: {verdict} ({listed})"]


def _render_pass(name: str, cost: dict[str, Any]) -> str:
    work = f"{format_si(cost['flops'])}FLOP, {format_gb(cost['bytes'])}"
    if cost["time_s"] is None:
        return f"{name:12}{work}"
    return f"{name:12}{work}: {format_seconds(cost['time_s'])}, waits for {cost['bound']}"
