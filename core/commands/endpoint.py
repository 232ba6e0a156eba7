"""``python -m core endpoint``: measure an OpenAI-compatible server, beside the prediction for its load."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Final

from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerators
from core.catalog.scenario import LIMITS as SCENARIO_LIMITS
from core.commands.arguments import add_formats, name_of, real_number, whole_number
from core.commands.model import find_model
from core.commands.output import check_writable, complain
from core.errors import RequestError
from core.lab.endpoint.load import measure
from core.lab.endpoint.prediction import Deployment, EndpointPrediction, predict
from core.lab.endpoint.record import EndpointRecord, dumps
from core.lab.endpoint.request import APIS, CONCURRENCY, LIMITS, MAX_LEVELS, EndpointRequest
from core.storage import write_atomically
from core.units import format_seconds, significant

#: Requests of a level unless they are named, for each request at once, and at least.
_EACH: Final = 4
_LEAST: Final = 8
#: Option, field, and what it is; limits and defaults are the request's own.
_NUMBERS: Final = (
    ("--prompt-tokens", "prompt_tokens", "tokens of each prompt"),
    ("--output-tokens", "output_tokens", "tokens asked for in each answer"),
    ("--seed", "seed", "of the prompts"),
)
_SECONDS: Final = (
    ("--silence", "silence_s", "seconds for which the server may send nothing"),
    ("--request-time", "request_s", "seconds that one request may take"),
    ("--time", "run_s", "seconds that all of it may take; what was answered by then is kept"),
)
_NO_PREDICTION: Final = (
    "No prediction was made: name the model with --model-id and the chip with --accelerator to have one."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    default = EndpointRequest()
    parser.add_argument("url", metavar="URL", help="the server's base, for example http://localhost:8000/v1")
    parser.add_argument(
        "--model", metavar="NAME", help="as the server names it; the only one it serves unless given"
    )
    parser.add_argument("--api", choices=APIS, default=default.api, help="which interface is asked")
    parser.add_argument(
        "--concurrency",
        type=whole_number(*CONCURRENCY),
        nargs="+",
        default=list(default.levels),
        metavar="N",
        help=f"requests at once, up to {MAX_LEVELS} levels one after another",
    )
    requests = whole_number(*_limits("requests"))
    words = f"requests of each level; {_EACH} for each at once, and {_LEAST} or more, unless given"
    parser.add_argument("--requests", type=requests, metavar="N", help=words)
    for option, name, words in _NUMBERS:
        read = whole_number(*_limits(name))
        parser.add_argument(option, type=read, default=getattr(default, name), metavar="N", help=words)
    for option, name, words in _SECONDS:
        low, high, _ = LIMITS[name]
        value = getattr(default, name)
        parser.add_argument(
            option, dest=name, type=real_number(low, high), default=value, metavar="S", help=words
        )
    parser.add_argument(
        "--early-end", action="store_true", help="let answers end early: leave out the field ignore_eos"
    )
    parser.add_argument(
        "--key-variable", metavar="NAME", help="an environment variable that holds the server's key"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the whole record here as JSON")
    _add_deployment(parser)


def _add_deployment(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("what runs behind the server, for the prediction")
    words = "a catalogue id, a config.json, or a folder"
    group.add_argument("--model-id", metavar="M", help=words)
    group.add_argument(
        "--accelerator",
        type=name_of(lambda: [*accelerators(), THIS_COMPUTER]),
        metavar="A",
        help=f"a data sheet, or {THIS_COMPUTER} for a server that runs here",
    )
    for option, words in (
        ("count", "accelerators; as many as tp unless given"),
        ("tp", "tensor-parallel degree"),
    ):
        read = whole_number(*SCENARIO_LIMITS[option])
        group.add_argument(
            f"--{option}", type=read, default=None if option == "count" else 1, metavar="N", help=words
        )
    add_formats(parser)


def run(args: Namespace) -> dict[str, Any]:
    """Predict, then measure.

    Raises:
        RequestError, EndpointError: a limit does not hold, or the server does not do what it must.
        ConfigError, FormatError, ScenarioError: the deployment is not known, or cannot be timed.
        RecordError: the file to write cannot be written; found out before anything is measured.
    """
    request = _request(args)
    request.validate()
    key = _key(args.key_variable)
    if args.out:
        check_writable(args.out)
    prediction = _prediction(args, request)
    record = asyncio.run(measure(request, key, prediction, _progress))
    if record.ended != "complete":
        complain(f"This run is {record.ended}: {record.answered} of {record.asked} requests are kept.")
    if args.out:
        text = dumps(record)
        try:
            write_atomically(args.out, lambda path: path.write_text(text, encoding="utf-8"))
        except OSError as problem:  # the disk filled up since; the answer is still printed
            complain(f"{args.out} could not be written ({problem.strerror}); the answer follows.")
    return report(record)


def report(record: EndpointRecord) -> dict[str, Any]:
    """The record as the command line prints it: without a row for each request."""
    whole = record.to_json()
    levels = [{name: value for name, value in level.items() if name != "rows"} for level in whole["levels"]]
    kept = (
        "created_at",
        "client",
        "server",
        "request",
        "prediction",
        "ended",
        "client_late_p99_s",
        "definitions",
    )
    notes = [*whole["notes"], *([] if record.prediction else [_NO_PREDICTION])]
    return {**{name: whole[name] for name in kept}, "levels": levels, "notes": notes}


def _request(args: Namespace) -> EndpointRequest:
    at_once = max(args.concurrency)
    return EndpointRequest(
        url=args.url,
        model=args.model or "",
        api=args.api,
        levels=tuple(args.concurrency),
        requests=args.requests or max(_EACH * at_once, _LEAST),
        full_length=not args.early_end,
        **{name: getattr(args, name) for _, name, _ in (*_NUMBERS, *_SECONDS)},
    )


def _key(variable: str | None) -> str:
    """The key, from the environment: an argument could be read by every program on the machine."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise RequestError(
            "--key-variable must name an environment variable that holds the key; the one it names is not "
            "set. Set it, and give its name, never the key itself."
        )
    return key


def _prediction(args: Namespace, request: EndpointRequest) -> EndpointPrediction | None:
    if args.accelerator is None and args.model_id is None:
        return None
    if args.accelerator is None or args.model_id is None:
        raise RequestError(
            "A prediction needs both --model-id and --accelerator; one of them is missing. Name both, or "
            "none."
        )
    deployment = Deployment(
        model=args.model_id,
        accelerator=args.accelerator,
        count=args.count or args.tp,
        tp=args.tp,
        weights=args.weights,
        kv=args.kv,
    )
    return predict(request, deployment, find_model(args.model_id))


def _limits(name: str) -> tuple[int, int]:
    low, high, _ = LIMITS[name]
    return int(low), int(high)


def _progress(phase: str, fraction: float | None) -> None:
    """Progress goes to a person who watches, and never to standard output, which is the answer's."""
    if sys.stderr is not None and sys.stderr.isatty():
        done = "" if fraction is None else f", {fraction:.0%}"
        sys.stderr.write(f"\rendpoint: {phase}{done}      " + ("\n" if fraction == 1.0 else ""))
        sys.stderr.flush()


def render(result: dict[str, Any]) -> str:
    """Write the answer for a person."""
    server, asked = result["server"], result["request"]
    software = f" ({server['software']})" if server["software"] else ""
    lines = [
        f"{server['model']} at {asked['url']}{software}: {asked['requests']} requests a level, "
        f"{asked['prompt_tokens']:,} prompt and {asked['output_tokens']:,} output tokens, "
        f"seed {asked['seed']}",
        "",
        f"{'at once':>7}  {'':10}{'predicted':>11}{'p50':>11}{'p90':>11}{'p99':>11}   p50 / predicted",
    ]
    for level in result["levels"]:
        lines += _level(level, result["prediction"])
    found = result["prediction"]
    if found:
        told = found["deployment"]
        lines += [
            "",
            f"Predicted for {told['model']} {told['weights']} on {told['count']} x {found['machine']}.",
        ]
        lines += found["violations"]
    return "\n".join([*lines, "", *result["notes"]])


def _level(level: dict[str, Any], prediction: dict[str, Any] | None) -> list[str]:
    summary, ratio = level["summary"], level["ratio"]
    predicted: list[dict[str, Any]] = prediction["levels"] if prediction else []
    at = level["concurrency"]
    found: dict[str, Any] = next((one for one in predicted if one["concurrency"] == at), {})
    lines = []
    for index, name in enumerate(("ttft_s", "tpot_s", "itl_s")):
        at_once = f"{at:>7}" if index == 0 else " " * 7
        lines.append(
            f"{at_once}  {name.upper()[:-2]:10}"
            + _times(found.get(name), summary[name])
            + ("" if ratio.get(name) is None else f"   {significant(ratio[name])}")
        )
    rate = summary["output_tokens_per_s"]
    cells = [
        "-" if value is None else significant(value) for value in (found.get("output_tokens_per_s"), rate)
    ]
    times = "" if ratio["output_tokens_per_s"] is None else f"   {significant(ratio['output_tokens_per_s'])}"
    lines.append(f"{'':7}  {'tokens/s':10}{cells[0]:>11}{cells[1]:>11}{'':22}{times}")
    return lines


def _times(predicted: float | None, measured: dict[str, float] | None) -> str:
    values = [predicted, *((measured or {}).get(name) for name in ("p50", "p90", "p99"))]
    return "".join(f"{'-' if value is None else format_seconds(value):>11}" for value in values)
