"""The gallery of recorded runs: every record in a folder, checked, with what is wrong with the others.

A file that is no whole record becomes one sentence and hides nothing else. Files are read anew when they
change, so a record that is dropped into the folder appears.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from core.catalog.assets import FOLDER as ASSETS
from core.errors import RecordError, UserError
from core.lab.checked_json import parse
from core.lab.gallery_entry import MAKE, Entry, entry_of
from core.lab.record import RunRecord
from core.lab.sweep_record import SweepRecord
from core.units import MB, format_gb

#: Where the records are that ship with the app, in folders of any name.
FOLDER: Final = ASSETS / "records"
#: No file is read that is larger.
MOST_BYTES: Final = 4 * MB
#: No more files of a folder are read.
MOST_FILES: Final = 256


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
        UserError: it holds a request that could not be made.
    """
    return entry_of(name or path.name, parse(_bytes(path), "A record", MOST_BYTES))


def _state(path: Path) -> tuple[int, int, int]:
    """When a file's content and its rights changed last, and its size; zeros where it went away meanwhile."""
    try:
        now = path.stat()
    except OSError:
        return 0, 0, 0
    return now.st_mtime_ns, now.st_ctime_ns, now.st_size


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
                f"and was not read. {MAKE}"
            )
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise RecordError(
            f"A record must be a file that can be read; this one cannot ({problem.strerror}). Check its name."
        ) from problem
