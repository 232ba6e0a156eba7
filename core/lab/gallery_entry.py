"""One recorded run in the gallery: the record itself, and what it is in a few words.

A record says by its schema what it is: a run of the lab, a sweep (``python -m core bench --out``), or a
measured server. An experiment's file holds its kind, what was asked, and its result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from core.errors import RecordError
from core.lab import record as run_record
from core.lab import sweep_record
from core.lab.checked_json import Reader
from core.lab.endpoint import record as endpoint_record
from core.lab.endpoint.record import EndpointRecord
from core.lab.experiment import Experiment
from core.lab.quality_record import QualityRecord
from core.lab.record import RunRecord
from core.lab.record_parts import HostRecord
from core.lab.sealed_json import check_seal, sealed
from core.lab.serve_record import ServeRecord
from core.lab.speculate_record import SpeculateRecord
from core.lab.split_trial import SplitTrial
from core.lab.sweep_record import SweepRecord
from core.units import format_count

#: How a record is made, for who has a file that is none.
MAKE: Final = "Make one with python -m core bench --out FILE."

Kind = Literal["run", "sweep", "server", "experiment"]
ExperimentRecord = ServeRecord | SpeculateRecord | QualityRecord | SplitTrial
Record = RunRecord | SweepRecord | EndpointRecord | ExperimentRecord


@dataclass(frozen=True, slots=True)
class Entry:
    """One whole record.

    Attributes:
        name: its path inside the folder. kind: what it is. record: itself.
        machine, device, model, formats, what: in a few words; formats are of weights / cache, the machine
            of a measured server is what its owner says of it.
        noisy: why its times are not to be trusted; empty on a quiet machine.
        experiment, result: what was asked and the plain result of an experiment; None for other kinds.
    """

    name: str
    kind: Kind
    record: Record
    machine: str
    device: str
    model: str
    formats: str
    what: str
    noisy: tuple[str, ...] = ()
    experiment: Experiment | None = None
    result: Mapping[str, Any] | None = None

    @property
    def created_at(self) -> str:
        """ISO time, UTC."""
        return self.record.created_at

    @property
    def host(self) -> HostRecord | None:
        """The machine that ran it; None for a server, which was measured from outside."""
        return None if isinstance(self.record, EndpointRecord) else self.record.host

    def text(self) -> str:
        """The record as the text of a file; what ``entry_of`` reads again.

        Raises:
            RecordError: it would be larger than a record may be.
        """
        if isinstance(self.record, RunRecord):
            return run_record.dumps(self.record)
        if isinstance(self.record, SweepRecord):
            return sweep_record.dumps(self.record)
        if isinstance(self.record, EndpointRecord):
            return endpoint_record.dumps(self.record)
        asked = self.experiment
        content = {"kind": asked and asked.kind, "payload": asked and asked.payload, "result": self.result}
        return json.dumps(sealed(content), allow_nan=False)


def entry_of(name: str, reader: Reader) -> Entry:
    """Read one parsed file as a record.

    Args:
        name: what it is called.
        reader: its content.

    Raises:
        RecordError: it is of no known schema, of another version, was changed, or does not add up.
        UserError: its request could not be made.
    """
    schema = reader.data.get("schema")
    if schema is None and {"kind", "payload", "result"} <= set(reader.data):
        if "checksum" in reader.data:  # the first ones were kept without
            check_seal(reader)
        kind = reader.text("kind", tuple(EXPERIMENTS))
        asked = Experiment(kind, reader.inner("payload").data, "")
        return _experiment(name, asked, reader.inner("result").data)
    make = _SCHEMAS.get(schema) if isinstance(schema, str) else None
    if make is None:
        raise RecordError(
            f"A record must name one of the schemas {', '.join(_SCHEMAS)}; this one names "
            f"{str(schema)[:60]!r}. {MAKE}"
        )
    return make(name, reader.data)


# --- What each record is in words -----------------------------------------------------------------


def _run(name: str, data: object) -> Entry:
    record = RunRecord.from_json(data)
    request = record.request
    cache = "without a cache" if request.cache == "none" else "with a cache"
    return Entry(
        name=name,
        kind="run",
        record=record,
        machine=_machine(record.host),
        device=record.host.device,
        model=record.model_name + (" (random weights)" if record.seeded_weights else ""),
        formats=_formats([request.weights], [request.kv]),
        what=f"{record.prediction.prompt_tokens:,} prompt tokens, {record.output_tokens:,} written, {cache}",
        noisy=record.noisy,
    )


def _sweep(name: str, data: object) -> Entry:
    record = SweepRecord.from_json(data)
    request, noisy = record.request, sum(bool(swept.noisy) for swept in record.cells)
    cells = format_count(len(request.cells()), "cell")
    return Entry(
        name=name,
        kind="sweep",
        record=record,
        machine=_machine(record.host),
        device=record.host.device,
        model=_listed(request.models),
        formats=_formats(request.weights, request.kv),
        what=f"{len(record.cells):,} of {cells}, each predicted before it ran",
        noisy=(f"{noisy} of {len(record.cells)} cells were noisy",) if noisy else (),
    )


def _server(name: str, data: object) -> Entry:
    record = EndpointRecord.from_json(data)
    known = record.prediction.deployment if record.prediction else None
    return Entry(
        name=name,
        kind="server",
        record=record,
        machine=f"{known.count} × {known.accelerator}" if known else "not said",
        device="server",
        model=record.server.model or record.request.model,
        formats=_formats([known.weights], [known.kv]) if known else "not said",
        what=f"{record.answered:,} of {record.asked:,} requests answered, at up to "
        f"{max(record.request.levels):,} at once",
    )


def _experiment(name: str, asked: Experiment, result: dict[str, Any]) -> Entry:
    """An experiment's record, its kind's own."""
    read, words = EXPERIMENTS[asked.kind]
    record = read(result)
    request = record.request.run if isinstance(record, SpeculateRecord) else record.request
    weights, kv = request.weights, request.kv
    return Entry(
        name=name,
        kind="experiment",
        record=record,
        machine=_machine(record.host),
        device=record.host.device,
        model=record.model_name,
        formats=_formats(
            [weights] if isinstance(weights, str) else weights, [kv] if isinstance(kv, str) else kv
        ),
        what=words(record),
        noisy=record.noisy,
        experiment=asked,
        result=result,
    )


def _serve_words(record: Any) -> str:  # noqa: ANN401 - a ServeRecord; the table below pairs them
    ways = len(record.services)
    return f"a trace of {record.request.trace.requests:,} requests, served in {format_count(ways, 'way')}"


def _speculate_words(record: Any) -> str:  # noqa: ANN401 - a SpeculateRecord
    return f"a text written without and with {record.request.guesses} guesses a round"


def _quality_words(record: Any) -> str:  # noqa: ANN401 - a QualityRecord
    return f"what {format_count(len(record.rows) - 1, 'pair')} of formats lose against fp32"


def _split_words(record: Any) -> str:  # noqa: ANN401 - a SplitTrial
    asked = record.request
    return f"a model split over {asked.tp * asked.pp} processes, TP {asked.tp}, PP {asked.pp}"


def _machine(host: HostRecord) -> str:
    return host.device_name or host.cpu


def _formats(weights: Sequence[str], kv: Sequence[str]) -> str:
    return f"{_listed(weights)} / {_listed(kv)}"


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_SCHEMAS: Final[Mapping[str, Callable[[str, Any], Entry]]] = {
    run_record.SCHEMA: _run,
    sweep_record.SCHEMA: _sweep,
    endpoint_record.SCHEMA: _server,
}
#: How the result of each kind of experiment is read, and its words.
EXPERIMENTS: Final[Mapping[str, tuple[Callable[[object], ExperimentRecord], Callable[[Any], str]]]] = {
    "serve-trace": (ServeRecord.from_json, _serve_words),
    "speculate": (SpeculateRecord.from_json, _speculate_words),
    "quality": (QualityRecord.from_json, _quality_words),
    "split": (SplitTrial.from_json, _split_words),
}
