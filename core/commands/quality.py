"""``python -m core quality``: what each number format loses on the embedded model, and its speed here."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from core.commands.arguments import name_of, whole_number
from core.lab.quality import (
    CACHES,
    LEAST_TOKENS,
    MOST_TOKENS,
    WEIGHTS,
    QualityRequest,
    compared_formats,
)
from core.lab.worker.quality_job import compare_formats
from core.units import format_gb, significant

_TENTHS: Final = 10


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    for use, words, usual in (("weights", "weight", WEIGHTS), ("kv", "cache", CACHES)):
        parser.add_argument(
            f"--{use}",
            nargs="*",
            type=name_of(partial(compared_formats, use)),
            default=list(usual),
            metavar="FORMAT",
            help=f"{words} formats to hold against fp32; none after the option leaves them all out",
        )
    parser.add_argument(
        "--tokens",
        type=whole_number(LEAST_TOKENS, MOST_TOKENS),
        default=QualityRequest().tokens,
        metavar="N",
        help="of the text to read (default: %(default)s); each format is also loaded and timed beside fp32, "
        "which takes as long with few tokens: name fewer formats to be done sooner",
    )


def run(args: Namespace) -> dict[str, Any]:
    """Compare the formats, however long that takes.

    Raises:
        RequestError, FormatError, CheckpointError: a sentence on what does not hold.
    """
    request = QualityRequest(weights=tuple(args.weights), kv=tuple(args.kv), tokens=args.tokens)
    return compare_formats(request, _teller(), math.inf).to_json()


def _teller() -> Callable[[str, float], None]:
    """Says on standard error when another tenth is done."""
    said = 0

    def tell(phase: str, fraction: float) -> None:
        nonlocal said
        if (tenth := int(fraction * _TENTHS)) > said:
            said = tenth
            with suppress(OSError, ValueError):  # standard error is closed
                sys.stderr.write(f"quality: {phase}, {tenth * _TENTHS} %\n")
                sys.stderr.flush()

    return tell


def render(result: dict[str, Any]) -> str:
    """Write the rows for a person."""
    layers, table = result["stored_as"]
    lines = [
        f"{result['model_name']} on {result['text_title']}: {result['predicted']:,} tokens predicted, "
        f"in windows of {result['window']}.",
        "The reference is the same stored weights in fp32 with a cache in fp32. The file keeps the layers' "
        f"matrices as {layers} and the table as {table}, so they were rounded once already.",
        "",
        f"{'weights':14}{'cache':7}{'size':>10}{'KL, nats':>12}{'agreement':>11}{'perplexity':>12}"
        f"{'tokens/s':>10}",
        *(_line(row) for row in result["rows"]),
    ]
    lines += [f"Times are noisy: {reason}." for reason in result["noisy"]]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    rate = "-" if row["tokens_per_s"] is None else significant(row["tokens_per_s"])
    return (
        f"{row['weights']:14}{row['kv']:7}{format_gb(row['weight_bytes']):>10}{row['kl']:>12.2e}"
        f"{row['agreement']:>11.1%}{row['perplexity']:>12.3f}{rate:>10}"
    )
