"""The sweep that a host shows to all visitors as "this server": measured once, when it was quiet."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from core.errors import RecordError
from core.lab import sweep_record
from core.lab.host import cpu_name
from core.lab.sweep_record import SweepRecord
from core.storage import lasting_folder

_NAME: Final = "this-server.json"


def publish(record: SweepRecord) -> str:
    """Keep a sweep for all visitors of this host, in place of the former; why not, or an empty text."""
    problem = _not_fit(record)
    if problem:
        return f"A sweep that is shown to all visitors must be whole and quiet; {problem}"
    try:
        sweep_record.save(record, _path())
    except RecordError as error:
        return str(error)
    except OSError as error:
        return f"{_path()} could not be written ({error.strerror}), so visitors see what they saw before."
    return ""


def published() -> SweepRecord | str | None:
    """What was published here; a sentence where that cannot be shown, None where nothing was."""
    path = _path()
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"The sweep of this server could not be read ({error.strerror})."
    return _read(path, state.st_mtime_ns, state.st_size)


def _path() -> Path:
    return lasting_folder() / _NAME


@functools.lru_cache(maxsize=1)
def _read(path: Path, changed_ns: int, size: int) -> SweepRecord | str:
    """Read once what does not change; the last two are the file's state."""
    del changed_ns, size
    try:
        record = sweep_record.load(path)
    except RecordError as error:
        return f"The sweep of this server is not shown. {error}"
    here = cpu_name()
    if record.host.cpu != here:
        return f"The sweep of this server is not shown: it was made on {record.host.cpu}, and this is {here}."
    return record


def _not_fit(record: SweepRecord) -> str:
    """What speaks against showing a sweep to everybody, as the end of a sentence; empty for nothing."""
    done = [swept for swept in record.cells if swept.samples]
    noisy = [swept for swept in done if swept.noisy]
    if not record.is_finished:
        return "this one ended early. Go on with it first."
    if not done:
        return "no cell of this one could be run."
    if 2 * len(noisy) > len(done):
        return (
            f"{len(noisy):,} of {len(done):,} cells were noisy ({noisy[0].noisy[0]}). "
            "Make it again when nothing else runs."
        )
    return ""
