"""The gallery of recorded runs: every record in a folder, checked, with what is wrong with the others.

A record says by its schema what it is: a run of the lab, a sweep (``python -m core bench --out``), or an
experiment. A file that is no whole record becomes one sentence and hides nothing else. Files are read
anew when they change, so a record that is dropped into the folder appears.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from core.catalog.assets import FOLDER as ASSETS
from core.errors import RecordError, UserError
from core.lab import record as run_record
from core.lab import sweep_record
from core.lab.checked_json import Reader, parse
from core.lab.experiment import Experiment
from core.lab.quality_record import QualityRecord
from core.lab.record import RunRecord
from core.lab.record_parts import HostRecord
from core.lab.serve_record import ServeRecord
from core.lab.speculate_record import SpeculateRecord
from core.lab.split_trial import SplitTrial
from core.lab.sweep_record import SweepRecord
from core.units import MB, format_gb

#: Where the records are that ship with the app, in folders of any name.
FOLDER: Final = ASSETS / "records"
#: No file is read that is larger.
MOST_BYTES: Final = 4 * MB
#: No more files of a folder are read.
MOST_FILES: Final = 256
_MAKE: Final = "Make one with python -m core bench --out FILE."
_WHAT: Final = "A record"

Kind = Literal["run", "sweep", "experiment"]
Record = RunRecord | SweepRecord | ServeRecord | SpeculateRecord | QualityRecord | SplitTrial


@dataclass(frozen=True, slots=True)
class Entry:
    """One whole record.

    Attributes:
        name: its path inside the folder. kind: what it is. record: itself.
        model, formats, what: in a few words; formats are of weights and cache.
        experiment, result: what was asked and the plain result of an experiment; None for other kinds.
    """

    name: str
    kind: Kind
    record: Record
    model: str
    formats: str
    what: str
    experiment: Experiment | None = None
    result: Mapping[str, Any] | None = None

    @property
    def created_at(self) -> str:
        """ISO time, UTC."""
        return self.record.created_at

    @property
    def host(self) -> HostRecord:
        """The machine."""
        return self.record.host

    @property
    def machine(self) -> str:
        """The machine in a few words.

        >>> from core.lab.gallery import FOLDER, gallery
        >>> all(entry.machine for entry in gallery(FOLDER).entries)
        True
        """
        return self.host.device_name or self.host.cpu

    @property
    def noisy(self) -> tuple[str, ...]:
        """Why its times are not to be trusted; of a sweep, how many of its cells."""
        if not isinstance(self.record, SweepRecord):
            return self.record.noisy
        cells = [swept for swept in self.record.cells if swept.noisy]
        return (f"{len(cells)} of {len(self.record.cells)} cells were disturbed",) if cells else ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that is no whole record, by its path inside the folder, and why: one sentence."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """What a folder holds, sorted by name."""

    entries: tuple[Entry, ...]
    refused: tuple[Refused, ...]

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The records of single runs."""
        return tuple(entry.record for entry in self.entries if isinstance(entry.record, RunRecord))

    @property
    def sweeps(self) -> tuple[SweepRecord, ...]:
        """The records of sweeps."""
        return tuple(entry.record for entry in self.entries if isinstance(entry.record, SweepRecord))


def gallery(folder: Path = FOLDER) -> Gallery:
    """Every JSON file in a folder and in the folders inside it; a folder that is not there is empty.

    Args:
        folder: of the app, never a visitor's.
    """
    paths = sorted(path for path in folder.rglob("*.json") if not path.name.startswith("."))
    found = [_kept(path, folder, _state(path)) for path in paths[:MOST_FILES]]
    refused = [each for each in found if isinstance(each, Refused)]
    if len(paths) > MOST_FILES:
        left = f"The folder may hold up to {MOST_FILES} records; {len(paths):,} are there. Move some away."
        refused.append(Refused(paths[MOST_FILES].name, left))
    return Gallery(tuple(each for each in found if isinstance(each, Entry)), tuple(refused))


def read(path: Path, name: str = "") -> Entry:
    """Read one file as a record.

    Args:
        path: the file.
        name: what it is called; its own name unless given.

    Raises:
        RecordError: it is too large, no file, cut short, of another version, changed, or no record.
    """
    reader = parse(_bytes(path), _WHAT, MOST_BYTES)
    called = name or path.name
    schema = reader.data.get("schema")
    if schema is None and {"kind", "payload", "result"} <= set(reader.data):
        return _experiment(called, reader)
    make = _SCHEMAS.get(schema) if isinstance(schema, str) else None
    if make is None:
        raise RecordError(
            f"A record must name one of the schemas {', '.join(_SCHEMAS)}; this one names "
            f"{str(schema)[:60]!r}. {_MAKE}"
        )
    return make(called, reader.data)


def _state(path: Path) -> tuple[int, int]:
    """When a file changed last, and its size; (0, 0) where it went away meanwhile."""
    try:
        now = path.stat()
    except OSError:
        return 0, 0
    return now.st_mtime_ns, now.st_size


@lru_cache(maxsize=2 * MOST_FILES)
def _kept(path: Path, folder: Path, _: tuple[int, int]) -> Entry | Refused:
    """A file, read once for each state that it had."""
    name = path.relative_to(folder).as_posix()
    try:
        return read(path, name)
    except UserError as problem:
        return Refused(name, str(problem))


def _bytes(path: Path) -> bytes:
    """The file's content; its size is looked at before it is opened.

    Raises:
        RecordError: it is larger than a record may be, or is no file that can be read.
    """
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):  # reading a pipe would wait for ever
            raise RecordError("A record must be a regular file; this is a folder, a pipe or a device.")
        if state.st_size > MOST_BYTES:
            raise RecordError(
                f"A record may have up to {format_gb(MOST_BYTES)}; this file has {format_gb(state.st_size)} "
                f"and was not read. {_MAKE}"
            )
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise RecordError(
            f"A record must be a file that can be read; this one cannot ({problem.strerror}). Check its name."
        ) from problem


# --- What each record is in words -----------------------------------------------------------------


def _run(name: str, data: object) -> Entry:
    record = RunRecord.from_json(data)
    request = record.request
    cache = "without a cache" if request.cache == "none" else "with a cache"
    what = f"{record.prediction.prompt_tokens:,} prompt tokens, {record.output_tokens:,} written, {cache}"
    model = record.model_name + (" (random weights)" if record.seeded_weights else "")
    return Entry(name, "run", record, model, _formats([request.weights], [request.kv]), what)


def _sweep(name: str, data: object) -> Entry:
    record = SweepRecord.from_json(data)
    request = record.request
    what = f"{len(record.cells)} of {len(request.cells())} cells, each predicted before it ran"
    models, formats = _listed(request.models), _formats(request.weights, request.kv)
    return Entry(name, "sweep", record, models, formats, what)


def _experiment(name: str, reader: Reader) -> Entry:
    """An experiment's file holds its kind, what was asked, and what came out."""
    kind = reader.text("kind", tuple(_EXPERIMENTS))
    asked, result = Experiment(kind, reader.inner("payload").data, ""), reader.inner("result").data
    return replace(_EXPERIMENTS[kind](name, result), experiment=asked, result=result)


def _serve(name: str, data: object) -> Entry:
    record = ServeRecord.from_json(data)
    request, ways = record.request, len(record.services)
    what = f"a trace of {request.trace.requests:,} requests, served in {_counted(ways, 'way')}"
    return Entry(
        name, "experiment", record, record.model_name, _formats([request.weights], [request.kv]), what
    )


def _speculate(name: str, data: object) -> Entry:
    record = SpeculateRecord.from_json(data)
    run = record.request.run
    what = f"a text written without and with {record.request.guesses} guesses a round"
    return Entry(name, "experiment", record, record.model_name, _formats([run.weights], [run.kv]), what)


def _quality(name: str, data: object) -> Entry:
    record = QualityRecord.from_json(data)
    request = record.request
    what = f"what {_counted(len(record.rows) - 1, 'pair')} of formats lose against fp32"
    return Entry(name, "experiment", record, record.model_name, _formats(request.weights, request.kv), what)


def _split(name: str, data: object) -> Entry:
    record = SplitTrial.from_json(data)
    request = record.request
    what = f"a model split over {request.tp * request.pp} processes, TP {request.tp}, PP {request.pp}"
    return Entry(
        name, "experiment", record, record.model_name, _formats([request.weights], [request.kv]), what
    )


def _formats(weights: list[str] | tuple[str, ...], kv: list[str] | tuple[str, ...]) -> str:
    return f"{_listed(weights)} / {_listed(kv)}"


def _listed(names: list[str] | tuple[str, ...], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


_SCHEMAS: Final[Mapping[str, Callable[[str, Any], Entry]]] = {
    run_record.SCHEMA: _run,
    sweep_record.SCHEMA: _sweep,
}
_EXPERIMENTS: Final[Mapping[str, Callable[[str, Any], Entry]]] = {
    "serve-trace": _serve,
    "speculate": _speculate,
    "quality": _quality,
    "split": _split,
}
