"""``python -m core bench``: calibrate this machine, predict runs, measure them, compare."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.commands.output import check_writable
from core.errors import JobError, RequestError
from core.lab import bench, sweep_record, this_server
from core.lab.client import LabClient
from core.lab.request import CACHES, DEVICES
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import SweepRequest
from core.units import format_gb, format_seconds, significant

#: Settings of a sweep that the command line names in the singular, and how one value is read.
_LISTS: Final = {
    "models": ("--model", str, "models: smollm2-135m, or shape: and an id of `list models`"),
    "weights": ("--weights", str, "weight formats"),
    "kv": ("--kv", str, "formats of the cache"),
    "caches": ("--cache", str, f"how keys and values are kept: {', '.join(CACHES)}"),
    "batches": ("--batch", int, "requests that arrive together"),
    "prompts": ("--prompt-tokens", int, "tokens of each prompt"),
}
_NUMBERS: Final = {
    "new_tokens": ("--output-tokens", "tokens of each answer"),
    "most": ("--most", "run so many cells at most, a seeded choice of all; 0 for all"),
    "seed": ("--seed", "of that choice and of the prompts"),
    "repeats": ("--repeats", "runs of each cell, at least"),
    "tries": ("--tries", "a noisy cell is predicted and run again, so often at most"),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--quick", action="store_true", help="a quick calibration, and a short sweep")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="the protocol: a choice of cells over three shapes, seeded by --seed",
    )
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="where to run")
    for name, (option, kind, words) in _LISTS.items():
        parser.add_argument(option, dest=name, nargs="+", type=kind, metavar="VALUE", help=words)
    for name, (option, words) in _NUMBERS.items():
        parser.add_argument(option, dest=name, type=int, metavar="N", help=words)
    parser.add_argument("--quality", action="store_true", help="also judge the formats on the shipped text")
    parser.add_argument("--out", type=Path, help="write the sweep's record here, after each part of it")
    parser.add_argument(
        "--publish", action="store_true", help="show the sweep to all visitors of this host's app"
    )
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with the sweep of this record")
    parser.epilog = (
        "A sweep runs many settings one after another; one combination of them is a cell. A cell is "
        "noisy where other programs used the processors, the machine's pace changed, or repeated steps "
        "scattered; no verdict is drawn from it."
    )


def run(args: Namespace) -> dict[str, Any]:
    """Calibrate, then run the sweep on the lab's own worker.

    Raises:
        JobError: a job failed, or the worker could not start.
        RequestError, FormatError: the sweep cannot be.
        RecordError: a file cannot be read or written; found out before anything is measured.
    """
    done = _resumed(args) if args.resume else None
    request = done.request if done else _request(args)
    request.validate()
    if args.out:
        check_writable(args.out)
    if done is not None and done.is_finished:
        _say("the sweep of that file is finished; nothing is left to run")
        record = done
    else:
        record = _measured(args, request, done)
    calibration = record.calibrations[-1]
    if args.publish:
        _say(this_server.publish(record) or "all visitors of this host's app see this sweep now")
    return {
        "machine": {**record.to_json()["host"], "fingerprint": calibration.fingerprint.id},
        "calibration": calibration.to_json(),
        "rows": [bench.row_json(swept) for swept in record.cells],
        "summary": bench.summary(record.cells),
    }


def _measured(args: Namespace, request: SweepRequest, done: SweepRecord | None) -> SweepRecord:
    """Calibrate this machine, and run what is left of the sweep on it."""
    with closing(LabClient(bench.LIMITS)) as lab:
        bench.wait_until_ready(lab, request.device)
        calibrate = bench.calibrate_quickly if args.quick else bench.calibrate
        calibrate(lab, request.device, _say)
        return _swept(lab, request, done, args.out)


def _resumed(args: Namespace) -> SweepRecord:
    """The sweep to go on with, whose settings are its own."""
    options: dict[str, str] = {name: words[0] for name, words in _LISTS.items()}
    options |= {name: words[0] for name, words in _NUMBERS.items()}
    given = [option for name, option in options.items() if getattr(args, name) is not None]
    given += [f"--{name.replace('_', '-')}" for name in ("held_out", "quality") if getattr(args, name)]
    if given:
        raise RequestError(
            f"--resume goes on with the settings of its file; {', '.join(given)} would change them. Leave "
            "them out, or begin a new sweep without --resume."
        )
    return sweep_record.load(args.resume)


def _request(args: Namespace) -> SweepRequest:
    if args.held_out:
        base = replace(bench.HELD_OUT, device=args.device)
    else:
        base = (bench.quick_sweep if args.quick else bench.full_sweep)(args.device)
    given: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value
        for name in (*_LISTS, *_NUMBERS)
        if (value := getattr(args, name)) is not None
    }
    return replace(base, **given, quality=args.quality)


def _swept(lab: LabClient, request: SweepRequest, done: SweepRecord | None, out: Path | None) -> SweepRecord:
    """The finished sweep; what there is of it is written after each part."""
    record, failed = done, ""
    for record in bench.run_sweep(lab, request, _say, done):
        if out:
            try:
                sweep_record.save(record, out)
                failed = ""
            except OSError as problem:  # the disk filled up since; the answer is still printed
                failed = f"{out} could not be written ({problem.strerror}); the answer follows"
    if failed:
        _say(failed)
    if record is None:
        raise JobError("A sweep must have a cell; this one has none. Name some settings.")
    return record


def render(result: dict[str, Any]) -> str:
    """Write the answer for a person."""
    machine, calibration = result["machine"], result["calibration"]
    read = format_gb(calibration["bandwidths"][-1]["read_bytes_per_s"])
    lines = [
        f"{machine['device_name'] or machine['cpu']}, {machine['threads']} threads, torch "
        f"{machine['torch_version']}, reads {read}/s",
        *(f"The calibration is noisy: {reason}." for reason in calibration["noisy"]),
        "",
        f"{'model':20}{'weights':14}{'kv':6}{'cache':11}{'batch':>5}{'prompt':>7}   "
        f"{'TTFT predicted, measured, ratio':34}{'TPOT, likewise':34}",
        *(_line(row) for row in result["rows"]),
        "",
    ]
    for name, errors in result["summary"].items():
        if errors["median_abs_pct_error"] is not None:
            lines.append(
                f"{_WORDS[name]} off by {significant(errors['median_abs_pct_error'], 2)} % (median), "
                f"{significant(errors['p90_abs_pct_error'], 2)} % (90th percentile)"
            )
    return "\n".join(lines)


_WORDS: Final = {"ttft": "TTFT", "tpot": "TPOT", "end_to_end": "Whole request"}


def _line(row: dict[str, Any]) -> str:
    of: dict[str, Any] = row["scenario"]
    start: str = (
        f"{of['model'].removeprefix('shape:'):20}{of['weights']:14}{of['kv']:6}{of['cache']:11}"
        f"{of['batch']:>5}{of['prompt_tokens']:>7,}   "
    )
    if row["problem"]:
        return start + str(row["problem"])
    cells = [start]
    for name in ("ttft", "tpot"):
        predicted, measured = row["predicted"][f"{name}_s"], row["measured"][f"{name}_s"]
        ratio = significant(row["ratio"][name])
        cells.append(f"{f'{format_seconds(predicted)}, {format_seconds(measured)}, {ratio}':34}")
    return "".join(cells) + ("noisy" if row["noisy"] else "")


def _say(what: str) -> None:
    # Standard output belongs to the answer.
    sys.stderr.write(f"bench: {what}\n")
    sys.stderr.flush()
