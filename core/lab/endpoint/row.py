"""What was measured: a row for each request, a level for each concurrency, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.lab.checked_json import Reader
from core.lab.endpoint.answer import Answer
from core.lab.endpoint.request import CONCURRENCY

PERCENTILES: Final = (50, 90, 99)
COUNTED: Final = ("usage", "pieces")
_LONGEST_S: Final = 1e5
#: Microseconds are kept of a time; the clock of an event loop is no finer.
_DIGITS: Final = 6
_MOST_TOKENS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One request; seconds.

    Attributes:
        start_s: when it was sent, from the beginning of its level.
        pieces_s: when each part of the answer came, from its start. last_s: the last part, or the end.
        output_tokens: of the answer. counted: "usage" where the server said so, else "pieces".
        prompt_tokens, cached_tokens: as the server counts them; None where it does not say.
        error: why there is no whole answer; empty where there is one.
    """

    start_s: float
    pieces_s: tuple[float, ...] = ()
    last_s: float = 0.0
    output_tokens: int = 0
    counted: str = "pieces"
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    error: str = ""

    @property
    def ttft_s(self) -> float:
        """From sending the request until the first part of its answer."""
        return self.pieces_s[0]

    @property
    def tpot_s(self) -> float | None:
        """(last - first) / (tokens - 1); None for a single token."""
        later = self.output_tokens - 1
        return (self.last_s - self.ttft_s) / later if later > 0 else None

    @property
    def end_s(self) -> float:
        """When its answer was whole, from the beginning of the level."""
        return self.start_s + self.last_s

    @classmethod
    def from_answer(cls, start_s: float, answer: Answer) -> Row:
        """A whole answer."""
        return cls(
            start_s=round(start_s, _DIGITS),
            pieces_s=tuple(round(second, _DIGITS) for second in answer.pieces_s),
            last_s=round(answer.last_s, _DIGITS),
            output_tokens=answer.written or len(answer.pieces_s),
            counted="usage" if answer.written else "pieces",
            prompt_tokens=answer.read,
            cached_tokens=answer.cached,
        )

    @classmethod
    def from_reader(cls, reader: Reader) -> Row:
        """Read it back, or raise a RecordError."""
        row = cls(
            start_s=reader.number("start_s", 0, _LONGEST_S),
            pieces_s=reader.numbers("pieces_s", 0, _LONGEST_S),
            last_s=reader.number("last_s", 0, _LONGEST_S),
            output_tokens=reader.whole("output_tokens", 0, _MOST_TOKENS),
            counted=reader.text("counted", COUNTED),
            prompt_tokens=_optional(reader, "prompt_tokens"),
            cached_tokens=_optional(reader, "cached_tokens"),
            error=reader.text("error"),
        )
        if bool(row.error) == bool(row.pieces_s) or (row.pieces_s and not row.output_tokens):
            reader.refuse("pieces_s", "either pieces with tokens or an error")
        if list(row.pieces_s) != sorted(row.pieces_s) or (row.pieces_s and row.last_s < row.pieces_s[-1]):
            reader.refuse("pieces_s", "times that do not go back")
        return row


@dataclass(frozen=True, slots=True)
class Level:
    """All requests made at one concurrency, in the order in which they were sent."""

    concurrency: int
    rows: tuple[Row, ...]

    @property
    def whole(self) -> tuple[Row, ...]:
        """The requests that were answered."""
        return tuple(row for row in self.rows if not row.error)

    @property
    def errors(self) -> tuple[str, ...]:
        """Why others were not, each reason once."""
        return tuple(dict.fromkeys(row.error for row in self.rows if row.error))

    @property
    def wall_s(self) -> float:
        """From the first request's start to the last whole answer."""
        return max((row.end_s for row in self.whole), default=0.0)

    @property
    def output_tokens(self) -> int:
        """Tokens of all whole answers."""
        return sum(row.output_tokens for row in self.whole)

    @property
    def gaps_s(self) -> NDArray[np.float64]:
        """Every ITL: the time between two parts of one answer, of all answers."""
        gaps = [np.diff(row.pieces_s) for row in self.whole]
        return np.concatenate(gaps) if gaps else np.empty(0)

    def summary(self) -> dict[str, Any]:
        """The figures of the level; null where nothing was measured."""
        whole, wall_s = self.whole, self.wall_s
        read = [row.prompt_tokens for row in whole if row.prompt_tokens is not None]
        return {
            "answered": len(whole),
            "failed": len(self.rows) - len(whole),
            "wall_s": wall_s if whole else None,
            "output_tokens": self.output_tokens,
            "prompt_tokens_mean": float(np.mean(read)) if read else None,
            "output_tokens_per_s": self.output_tokens / wall_s if wall_s else None,
            "requests_per_s": len(whole) / wall_s if wall_s else None,
            "ttft_s": percentiles([row.ttft_s for row in whole]),
            "tpot_s": percentiles([row.tpot_s for row in whole if row.tpot_s is not None]),
            "itl_s": percentiles(self.gaps_s),
        }

    @classmethod
    def from_reader(cls, reader: Reader) -> Level:
        """Read it back, or raise a RecordError."""
        rows = tuple(Row.from_reader(entry) for entry in reader.objects("rows"))
        if not rows:
            reader.refuse("rows", "one request or more")
        return cls(reader.whole("concurrency", *CONCURRENCY), rows)


def percentiles(values_s: Sequence[float] | NDArray[np.float64]) -> dict[str, float] | None:
    """Median, 90th and 99th percentile by name; None where there are no values.

    >>> percentiles([0.1, 0.2, 0.3])["p50"]
    0.2
    """
    if not len(values_s):
        return None
    found = np.percentile(np.asarray(values_s, np.float64), PERCENTILES)
    return {f"p{rank}": float(value) for rank, value in zip(PERCENTILES, found, strict=True)}


def _optional(reader: Reader, name: str) -> int | None:
    return None if reader.data.get(name) is None else reader.whole(name, 0, _MOST_TOKENS)
