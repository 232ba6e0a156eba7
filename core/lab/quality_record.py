"""The record of a comparison of formats: one row a format, maps of the error, one tensor in detail."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.lab.checked_json import Reader, utc_time
from core.lab.quality import QualityRequest
from core.lab.quality_tensor import TensorRecord
from core.lab.record_parts import HostRecord

SCHEMA: Final = "llm-inference-lab/quality"
VERSION: Final = 1
#: What a map is of: the layers' matrices, the inputs of their products, or the cache.
MAPS: Final = ("weights", "inputs", "cache")
_WHAT: Final = "A comparison of formats"
_LAYERS: Final = 500
_MOST_DB: Final = 500.0
#: What the words in a record mean.
DEFINITIONS: Final[dict[str, str]] = {
    "reference": "The same stored weights in fp32, with a cache in fp32.",
    "kl": "Mean over the predicted tokens of sum p (log p - log q) in nats; p is of the reference.",
    "agreement": "Part of the predicted tokens whose likeliest follower is the reference's.",
    "perplexity": "exp of the mean negative log likelihood; windows are read apart, each from an empty "
    "cache, and nothing predicts the first token of each.",
    "sqnr_db": "10 log10(sum x**2 / sum (x - q)**2); null where nothing was lost. worst_db is the same "
    "of the worst output channel of a matrix, or the worst token of an activation.",
    "step_s": "Decode steps of one sequence at the given context: warm-up until three agree within 5 %, then "
    "the median of at least 30 with p10 and p90, until the token is on the host.",
    "errors": "kl_error and nll_change_error are standard errors of the means over the tokens.",
}


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One pair of formats.

    Attributes:
        weights, kv: ids. weight_bytes: of all parameters. cache_bytes_per_token: scales included.
        step_s: median, p10 and p90 of a decode step; empty where none was timed.
        nll: mean nats a token. nll_change: by how much that is more than the reference's.
        kl, kl_error, kl_worst, agreement: see ``DEFINITIONS``.
    """

    weights: str
    kv: str
    weight_bytes: int
    cache_bytes_per_token: int
    step_s: tuple[float, ...]
    nll: float
    nll_change: float
    nll_change_error: float
    kl: float
    kl_error: float
    kl_worst: float
    agreement: float

    @property
    def perplexity(self) -> float:
        """``exp(nll)``."""
        return math.exp(self.nll)

    @property
    def tokens_per_s(self) -> float | None:
        """One over the median step; None where none was timed."""
        return 1 / self.step_s[0] if self.step_s else None

    @classmethod
    def from_reader(cls, reader: Reader) -> FormatRow:
        """Read it back, or raise a RecordError."""
        step_s = reader.numbers("step_s", 1e-9, 1e6)
        if len(step_s) not in {0, 3}:
            reader.refuse("step_s", "three times or none")
        return cls(
            weights=reader.text("weights"),
            kv=reader.text("kv"),
            weight_bytes=reader.whole("weight_bytes", 1),
            cache_bytes_per_token=reader.whole("cache_bytes_per_token", 1),
            step_s=step_s,
            nll=reader.number("nll", 0, 100),
            nll_change=reader.number("nll_change", -100, 100),
            nll_change_error=reader.number("nll_change_error", 0, 100),
            kl=reader.number("kl", 0, 100),
            kl_error=reader.number("kl_error", 0, 100),
            kl_worst=reader.number("kl_worst", 0, 1000),
            agreement=reader.number("agreement", 0, 1),
        )


@dataclass(frozen=True, slots=True)
class MapRecord:
    """Signal to noise by layer and column; None where nothing was lost.

    Attributes:
        of: one of ``MAPS``. name: the format, in the words of a page. columns: operators, or keys and values.
    """

    of: str
    name: str
    columns: tuple[str, ...]
    sqnr_db: tuple[tuple[float | None, ...], ...]
    worst_db: tuple[tuple[float | None, ...], ...]

    @classmethod
    def from_reader(cls, reader: Reader) -> MapRecord:
        """Read it back, or raise a RecordError."""
        columns = reader.texts("columns")
        return cls(
            of=reader.text("of", MAPS),
            name=reader.text("name"),
            columns=columns,
            sqnr_db=_cells(reader, "sqnr_db", len(columns)),
            worst_db=_cells(reader, "worst_db", len(columns)),
        )


@dataclass(frozen=True, slots=True)
class QualityRecord:
    """One comparison.

    Attributes:
        created_at: ISO time, UTC. model_name: as a page shows it.
        stored_as: how the file keeps the layers' matrices, and its table; "plain" where nothing was rounded.
        text_title: of the text. window: tokens read at a time. predicted: tokens that were predicted.
        context: of the timed steps. rows: the reference first. left_out: formats that time did not allow.
        noisy: why the times are not to be trusted; empty on a quiet host.
    """

    created_at: str
    host: HostRecord
    request: QualityRequest
    model_name: str
    stored_as: tuple[str, str]
    text_title: str
    window: int
    predicted: int
    context: int
    rows: tuple[FormatRow, ...]
    maps: tuple[MapRecord, ...]
    tensor: TensorRecord
    left_out: tuple[str, ...] = ()
    noisy: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A plain object with schema and definitions."""
        content = {"schema": SCHEMA, "version": VERSION, **asdict(self), "definitions": DEFINITIONS}
        content["rows"] = [
            {**asdict(row), "perplexity": row.perplexity, "tokens_per_s": row.tokens_per_s}
            for row in self.rows
        ]
        plain: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return plain

    @classmethod
    def from_json(cls, data: object) -> QualityRecord:
        """Read a record back and check it.

        Raises:
            RecordError: a value is missing or out of bounds.
            RequestError: its request could not be made.
        """
        reader = Reader(data, _WHAT)
        reader.text("schema", (SCHEMA,))
        reader.whole("version", VERSION, VERSION)
        stored = reader.texts("stored_as")
        if len(stored) != 2:
            reader.refuse("stored_as", "two encodings")
        rows = tuple(map(FormatRow.from_reader, reader.objects("rows")))
        if not rows:
            reader.refuse("rows", "the reference's row")
        return cls(
            created_at=utc_time(reader, "created_at"),
            host=HostRecord.from_reader(reader.inner("host")),
            request=QualityRequest.from_json(reader.inner("request").data),
            model_name=reader.text("model_name"),
            stored_as=(stored[0], stored[1]),
            text_title=reader.text("text_title"),
            window=reader.whole("window", 2, 10**6),
            predicted=reader.whole("predicted", 1, 10**6),
            context=reader.whole("context", 1, 10**6),
            rows=rows,
            maps=tuple(map(MapRecord.from_reader, reader.objects("maps"))),
            tensor=TensorRecord.from_reader(reader.inner("tensor")),
            left_out=reader.texts("left_out"),
            noisy=reader.texts("noisy"),
        )


def _cells(reader: Reader, name: str, columns: int) -> tuple[tuple[float | None, ...], ...]:
    """A table of decibels, every row as wide as there are columns."""
    rows = reader.data.get(name)
    if not isinstance(rows, list) or not 1 <= len(rows) <= _LAYERS:
        reader.refuse(name, "a table of decibels")
    for row in rows:
        if not isinstance(row, list) or len(row) != columns or not all(map(_is_db, row)):
            reader.refuse(name, f"rows of {columns} decibels")
    return tuple(tuple(row) for row in rows)


def _is_db(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST_DB
