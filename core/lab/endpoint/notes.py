"""What must be said beside the figures of a measured server: how it counted, what failed, what is blurred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from core.lab.endpoint.row import Row
from core.units import format_seconds, significant

if TYPE_CHECKING:
    from core.lab.endpoint.record import EndpointRecord

#: Prompts and answers that differ by more than this from what was asked for are told.
_TOLD: Final = 0.03
#: The client's own lateness, as a part of the median ITL, above which times of tokens are blurred.
_BLURRED: Final = 0.25
#: Fewer samples than this have no 99th percentile to speak of.
_ENOUGH: Final = 100


def notes(record: EndpointRecord) -> tuple[str, ...]:
    """The sentences, most important first."""
    return (*_ended(record), *_failed(record), *_sizes(record), *_counting(record), *_clock(record))


def _rows(record: EndpointRecord) -> list[Row]:
    return [row for level in record.levels for row in level.whole]


def _ended(record: EndpointRecord) -> Iterator[str]:
    if record.ended != "complete":
        why = "You stopped the run" if record.ended == "stopped" else "The run's time was over"
        yield f"{why}: {record.answered} of {record.asked} requests were answered, and are kept."


def _failed(record: EndpointRecord) -> Iterator[str]:
    for level in record.levels:
        if level.errors:
            failed = len(level.rows) - len(level.whole)
            others = f" ({len(level.errors) - 1} more reasons)" if len(level.errors) > 1 else ""
            yield (
                f"At {level.concurrency} at once, {failed} of {len(level.rows)} requests failed and do not "
                f"count. {level.errors[0]}{others}"
            )


def _sizes(record: EndpointRecord) -> Iterator[str]:
    rows, request = _rows(record), record.request
    read = [row.prompt_tokens for row in rows if row.prompt_tokens is not None]
    if rows and not read:
        yield "The server does not count prompt tokens, so a word of the prompts is taken for one."
    for name, asked, seen in (
        ("Prompts", request.prompt_tokens, read),
        ("Answers", request.output_tokens, [row.output_tokens for row in rows]),
    ):
        if seen and abs(np.mean(seen) / asked - 1) > _TOLD:
            mean = significant(float(np.mean(seen)))
            yield f"{name} had {mean} tokens on average; {asked:,} were asked for."
    cached = sum(row.cached_tokens or 0 for row in rows)
    if read and cached > _TOLD * sum(read):
        yield (
            f"{cached / sum(read):.0%} of the prompt tokens came from a cache of the server's, as those of "
            "an earlier run do. Another seed makes new prompts."
        )


def _counting(record: EndpointRecord) -> Iterator[str]:
    rows = _rows(record)
    if any(row.counted == "pieces" for row in rows):
        yield "The server does not say how many tokens it wrote; parts of the answers are counted instead."
    parts, tokens = sum(len(row.pieces_s) for row in rows), sum(row.output_tokens for row in rows)
    if parts and tokens / parts - 1 > _TOLD:
        each = significant(tokens / parts)
        yield f"Parts of the answers hold {each} tokens on average; ITL is the time between parts."
    if rows and record.request.requests < _ENOUGH:
        yield (
            f"TTFT and TPOT are of {record.request.requests} requests a level, so their 99th percentile is "
            "close to the slowest one."
        )


def _clock(record: EndpointRecord) -> Iterator[str]:
    if is_blurred(record):
        late = format_seconds(record.client_late_p99_s or 0.0)
        yield (
            f"This computer was busy: its own clock watcher woke up to {late} late. Times of tokens are no "
            "sharper than that."
        )


def is_blurred(record: EndpointRecord) -> bool:
    """Whether the measuring computer was too busy to time single tokens."""
    gaps = [level.gaps_s for level in record.levels]
    medians = [float(np.median(found)) for found in gaps if len(found)]
    late = record.client_late_p99_s
    return late is not None and bool(medians) and late > _BLURRED * min(medians)
