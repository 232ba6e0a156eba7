"""The record of one measurement of a server: what was asked, predicted and measured, in one JSON file.

It holds the server's scheme, host and port and nothing else of its address, no key, no prompt and no
answer. Figures are computed from the rows, so a record that was changed by hand is refused.
"""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.errors import RecordError, UserError
from core.lab.checked_json import Reader, utc_time
from core.lab.endpoint.notes import notes
from core.lab.endpoint.prediction import EndpointPrediction
from core.lab.endpoint.request import EndpointRequest
from core.lab.endpoint.row import Level
from core.lab.host import cpu_name, usable_cores
from core.lab.record_file import RecordFile
from core.lab.sealed_json import opened, sealed
from core.units import MB

SCHEMA: Final = "llm-inference-lab/endpoint"
VERSION: Final = 1
MOST_BYTES: Final = 4 * MB
ENDS: Final = ("complete", "stopped", "out of time")
_WHAT: Final = "A record of a server"
_CLOSE: Final = 1e-9

#: What the words in a record mean.
DEFINITIONS: Final[dict[str, str]] = {
    "ttft_s": "From sending a request until the first part of its answer is here: network, HTTP, waiting at "
    "the server, prefill and sampling. Connections are opened before each level, so it holds no handshake "
    "unless the server closes them.",
    "tpot_s": "(last part - first part) / (tokens - 1) of one answer.",
    "itl_s": "Time between two parts of one answer that follow each other; parts that arrive together have "
    "a gap of zero. A part is one token for most servers.",
    "output_tokens": "As the server counts them (usage), else the parts of the answer (pieces).",
    "output_tokens_per_s": "Tokens of all whole answers of a level / from its first request to its last "
    "whole answer, the beginning and the end with fewer requests at once included.",
    "concurrency": "A closed loop: so many requests are under way, and the next is sent when one ends.",
    "prompts": "Common English words, seeded; no two begin alike. Greedy answers. Two warm-up requests, "
    "which do not count, show how the server counts words.",
    "client": "The computer that measured. client_late_p99_s: by how much its own clock watcher woke late; "
    "times are not sharper than that.",
    "round_trip_s": "The shortest of some requests for the list of models: network and HTTP alone.",
    "predicted": "Made before the first request, from a data sheet or this computer's calibration.",
}


@dataclass(frozen=True, slots=True)
class ClientRecord:
    """The computer that measured."""

    cpu: str
    cores: int
    system: str
    python_version: str

    @classmethod
    def here(cls) -> ClientRecord:
        """This computer."""
        return cls(cpu_name(), usable_cores(), platform.platform(), platform.python_version())

    @classmethod
    def from_reader(cls, reader: Reader) -> ClientRecord:
        """Read it back, or raise a RecordError."""
        texts = {name: reader.text(name) for name in ("cpu", "system", "python_version")}
        return cls(**texts, cores=reader.whole("cores", 1, 4096))


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """What the server says of itself: its software, the model it answers with, and what it serves."""

    software: str
    model: str
    models: tuple[str, ...]
    round_trip_s: float | None
    words_each: float

    @classmethod
    def from_reader(cls, reader: Reader) -> ServerRecord:
        """Read it back, or raise a RecordError."""
        return cls(
            software=reader.text("software"),
            model=reader.text("model"),
            models=reader.texts("models"),
            round_trip_s=reader.optional_number("round_trip_s", 0, 1e5),
            words_each=reader.number("words_each", 0, 1e3),
        )


@dataclass(frozen=True, slots=True)
class EndpointRecord:
    """One measurement.

    Attributes:
        created_at: ISO time, UTC. request: the load, without the address's path.
        prediction: made before; None where no model and chip were named.
        levels: in the order in which they were measured. ended: one of ``ENDS``.
        client_late_p99_s: how late this computer's own watcher woke; None where it never did.
    """

    created_at: str
    client: ClientRecord
    server: ServerRecord
    request: EndpointRequest
    prediction: EndpointPrediction | None
    levels: tuple[Level, ...]
    ended: str
    client_late_p99_s: float | None = None

    @property
    def asked(self) -> int:
        """Requests that were to be made."""
        return len(self.request.levels) * self.request.requests

    @property
    def answered(self) -> int:
        """Requests that were answered."""
        return sum(len(level.whole) for level in self.levels)

    def ratios(self, level: Level) -> dict[str, float | None]:
        """Measured over predicted: medians of times, and rates; None where one of the two is missing."""
        found = self.prediction.at(level.concurrency) if self.prediction else None
        said = level.summary()
        times = {name: (said[name] or {}).get("p50") for name in ("ttft_s", "tpot_s")}
        measured = {**times, "output_tokens_per_s": said["output_tokens_per_s"]}
        return {name: _ratio(value, getattr(found, name, None)) for name, value in measured.items()}

    def to_json(self) -> dict[str, Any]:
        """A plain object with schema, definitions, figures and a checksum over all of it."""
        return sealed(
            {
                "schema": SCHEMA,
                "version": VERSION,
                "created_at": self.created_at,
                "client": asdict(self.client),
                "server": asdict(self.server),
                "request": self.request.to_json(),
                "prediction": self.prediction.to_json() if self.prediction else None,
                "levels": [
                    {
                        "concurrency": level.concurrency,
                        "summary": level.summary(),
                        "ratio": self.ratios(level),
                        "rows": [asdict(row) for row in level.rows],
                    }
                    for level in self.levels
                ],
                "ended": self.ended,
                "client_late_p99_s": self.client_late_p99_s,
                "notes": list(notes(self)),
                "definitions": DEFINITIONS,
            }
        )

    @classmethod
    def from_json(cls, data: object) -> EndpointRecord:
        """Read a record back and check that it adds up.

        Raises:
            RecordError: a value is missing or out of bounds, or the record was changed.
        """
        reader = opened(data, _WHAT, SCHEMA, VERSION)
        known = reader.data.get("prediction") is not None
        record = cls(
            created_at=utc_time(reader, "created_at"),
            client=ClientRecord.from_reader(reader.inner("client")),
            server=ServerRecord.from_reader(reader.inner("server")),
            request=_request(reader),
            prediction=EndpointPrediction.from_reader(reader.inner("prediction")) if known else None,
            levels=tuple(Level.from_reader(entry) for entry in reader.objects("levels")),
            ended=reader.text("ended", ENDS),
            client_late_p99_s=reader.optional_number("client_late_p99_s", 0, 1e5),
        )
        _check_sums(record, reader)
        return record


#: Records as files.
FILE: Final = RecordFile(_WHAT, EndpointRecord.from_json, MOST_BYTES, "Ask for fewer tokens.")
dumps, loads = FILE.dumps, FILE.loads


def _request(reader: Reader) -> EndpointRequest:
    try:
        return EndpointRequest.from_json(reader.inner("request").data)
    except UserError as mistake:
        raise RecordError(f"{_WHAT} must hold a request that could be made. {mistake}") from mistake


def _check_sums(record: EndpointRecord, reader: Reader) -> None:
    asked = [level.concurrency for level in record.levels]
    if asked != list(record.request.levels)[: len(asked)]:
        reader.refuse("levels", "those of its request")
    for level, entry in zip(record.levels, reader.objects("levels"), strict=True):
        if len(level.rows) > record.request.requests:
            entry.refuse("rows", "as many as were asked for")
        if not _same(level.summary(), entry.inner("summary").data):
            entry.refuse("summary", "what follows from its rows")


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_CLOSE)
    return one == other


def _ratio(measured: float | None, predicted: float | None) -> float | None:
    return measured / predicted if measured and predicted else None
