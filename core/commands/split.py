"""``python -m core split``: the same text by one process and by several that share the model.

It starts the processes itself; under ``torchrun --nproc-per-node N -m core split`` it is one of them.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from core.analytic.parallel import ParallelPlan
from core.catalog.formats import FORMATS
from core.commands.arguments import add_formats, whole_number
from core.engine.engine import Engine
from core.engine.files.models import EMBEDDED
from core.engine.parallel import torchrun
from core.engine.parallel.launch import LIMIT_S, launch
from core.engine.parallel.rank import Job, Report
from core.engine.parallel.split import MOST_RANKS, compare, make_job
from core.errors import RequestError
from core.lab.split_record import split_to_json
from core.units import format_gib, format_seconds, significant

_MAX_TOKENS: Final = 4096
_MOST_SECONDS: Final = 86_400


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    degree = whole_number(1, MOST_RANKS)
    parser.add_argument("prompt", metavar="PROMPT", help="the text to answer, or to continue with --raw")
    parser.add_argument("--tp", type=degree, default=1, metavar="T", help="processes that share each layer")
    parser.add_argument(
        "--pp", type=degree, default=1, metavar="P", help="stages, each with some of the layers"
    )
    parser.add_argument(
        "--model", default=EMBEDDED, help=f"{EMBEDDED}, shape:ID (random weights), or a model's directory"
    )
    add_formats(parser, FORMATS)
    parser.set_defaults(weights="fp32", kv="fp32")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where to run")
    parser.add_argument("--threads", type=whole_number(1, 1024), help="processor threads of all together")
    parser.add_argument(
        "--max-tokens", type=whole_number(1, _MAX_TOKENS), default=32, metavar="N", help="the most new tokens"
    )
    parser.add_argument(
        "--limit",
        type=whole_number(1, _MOST_SECONDS),
        default=int(LIMIT_S),
        metavar="SECONDS",
        help="when the processes are ended",
    )
    parser.add_argument("--raw", action="store_true", help="the bare prompt, without the chat template")
    parser.epilog = (
        "In the JSON, message_bytes and predicted_bytes are of all messages of an exchange together: count "
        "of them; median_s, p10_s and p90_s are seconds of one."
    )


def run(args: Namespace) -> dict[str, Any]:
    """Run the model alone, then split, and report both.

    Raises:
        RequestError: the model cannot be split so. JobError: the processes did not finish.
        CheckpointError, FormatError, ConfigError: the model cannot be loaded so.
        SystemExit: torchrun started this process, and another one speaks.
    """
    if not args.prompt.strip():
        raise RequestError("The prompt is empty. Give a few words for the model to continue.")
    if torchrun.started_ranks() is not None and not torchrun.is_first():
        torchrun.assist(args.device)
        raise SystemExit(0)
    engine = Engine.load(
        args.model, weights=args.weights, kv=args.kv, device=args.device, threads=args.threads
    )
    job = make_job(
        engine,
        args.model,
        engine.encode(args.prompt, raw=args.raw),
        ParallelPlan(tp=args.tp, pp=args.pp),
        max_tokens=args.max_tokens,
        end_tokens=frozenset() if args.raw else None,
    )
    if torchrun.started_ranks() is None:
        _say(f"one process with {torch.get_num_threads()} threads, then {job.ranks} with {job.threads} each")
        runs: Callable[[Job], list[Report]] = partial(launch, limit_s=args.limit)
    else:
        runs = torchrun.run_among
    return split_to_json(compare(engine, job, runs))


def render(result: dict[str, Any]) -> str:
    """Write the comparison for a person."""
    ranks, shape = result["tp"] * result["pp"], f"tp {result['tp']}, pp {result['pp']}"
    same = "the same tokens as" if result["equal_to_single"] else "OTHER TOKENS than"
    kept = ", ".join(format_gib(size) for size in result["stored_bytes"])
    lines = [
        result["text"],
        "",
        f"{len(result['token_ids'])} tokens by {ranks} processes ({shape}): {same} one process writes",
        f"logits after the prompt: off by {result['logits_error']:.1e} of the largest",
        f"weights: {kept}; {format_gib(result['single_stored_bytes'])} in one process",
        *([] if result["single_tokens_per_s"] is None else [_rates(result)]),
        "",
        f"{'stage':6}{'exchange':22}{'among':>6}{'count':>8}{'bytes in all':>14}{'predicted':>14}"
        "   seconds of one",
        *(_line(each) for each in result["collectives"]),
    ]
    return "\n".join(lines)


def _rates(result: dict[str, Any]) -> str:
    together, alone = significant(result["tokens_per_s"]), significant(result["single_tokens_per_s"])
    return (
        f"{together} tokens/s with {result['threads']} threads a process; {alone} in one process with "
        f"{result['single_threads']}"
    )


def _line(each: dict[str, Any]) -> str:
    predicted = "not counted" if each["predicted_bytes"] is None else f"{each['predicted_bytes']:,}"
    middle, low, high = (format_seconds(each[name]) for name in ("median_s", "p10_s", "p90_s"))
    return (
        f"{each['stage']:<6}{each['name']:22}{each['ranks']:>6}{each['count']:>8,}{each['message_bytes']:>14,}"
        f"{predicted:>14}   {middle} ({low} to {high})"
    )


def _say(what: str) -> None:
    # Standard output belongs to the answer.
    sys.stderr.write(f"split: {what}\n")
    sys.stderr.flush()
