"""``python -m core bench``: calibrate this machine, predict runs, measure them, compare."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

from core.commands.output import check_writable
from core.lab import bench
from core.lab.client import LabClient
from core.lab.request import DEVICES
from core.storage import write_atomically
from core.units import format_gb, format_seconds, significant


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--quick", action="store_true", help="a quick calibration, and short contexts only")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="where to run")
    parser.add_argument("--out", type=Path, help="write the answer and every run's record here as JSON")


def run(args: Namespace) -> dict[str, Any]:
    """Calibrate, then run the grid on the lab's own worker.

    Raises:
        JobError: a job failed, or the worker could not start.
        RecordError: the file to write cannot be written; found out before anything is measured.
    """
    if args.out:
        check_writable(args.out)
    with closing(LabClient(bench.LIMITS)) as lab:
        bench.wait_until_ready(lab, args.device)
        calibrate = bench.calibrate_quickly if args.quick else bench.calibrate
        calibration = calibrate(lab, args.device, _say)
        contexts = bench.QUICK_CONTEXTS if args.quick else bench.CONTEXTS
        rows = bench.run_grid(lab, contexts, args.device, _say)
    host = rows[0].record.to_json()["host"]
    result = {
        "machine": {**host, "fingerprint": calibration.fingerprint.id},
        "calibration": calibration.to_json(),
        "rows": [bench.row_json(row) for row in rows],
        "summary": bench.summary(rows),
    }
    if args.out:
        text = json.dumps({**result, "records": [row.record.to_json() for row in rows]}, allow_nan=False)
        try:
            write_atomically(args.out, lambda path: path.write_text(text, encoding="utf-8"))
        except OSError as problem:  # the disk filled up since; the answer is still printed
            _say(f"{args.out} could not be written ({problem.strerror}); the answer follows")
    return result


def render(result: dict[str, Any]) -> str:
    """Write the answer for a person."""
    machine, calibration = result["machine"], result["calibration"]
    read = format_gb(calibration["bandwidths"][-1]["read_bytes_per_s"])
    lines = [
        f"{machine['device_name'] or machine['cpu']}, {machine['threads']} threads, torch "
        f"{machine['torch_version']}, reads {read}/s",
        *(f"The calibration is noisy: {reason}." for reason in calibration["noisy"]),
        "",
        f"{'weights':14}{'context':>8}   {'TTFT predicted, measured, ratio':34}{'TPOT, likewise':34}",
        *(_line(row) for row in result["rows"]),
        "",
    ]
    for name, errors in result["summary"].items():
        if errors["median_abs_pct_error"] is not None:
            lines.append(
                f"{name.upper()} off by {significant(errors['median_abs_pct_error'], 2)} % (median), "
                f"{significant(errors['p90_abs_pct_error'], 2)} % (90th percentile)"
            )
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    cells = [f"{row['scenario']['weights']:14}{row['scenario']['prompt_tokens']:>8,}   "]
    for name in ("ttft", "tpot"):
        predicted, measured = row["predicted"][f"{name}_s"], row["measured"][f"{name}_s"]
        text = "-"
        if predicted is not None and measured is not None:
            ratio = significant(row["ratio"][name])
            text = f"{format_seconds(predicted)}, {format_seconds(measured)}, {ratio}"
        cells.append(f"{text:34}")
    return "".join(cells) + ("noisy" if row["noisy"] else "")


def _say(what: str) -> None:
    # Standard output belongs to the answer.
    sys.stderr.write(f"bench: {what}\n")
    sys.stderr.flush()
