"""Where the project keeps what it computed for this machine: the user's cache folder.

Everything in it can be deleted at any time; it is made again when it is needed.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: An environment variable that moves the folder (tests use it, and hosts with a data disk).
CACHE_VARIABLE: Final = "LLM_LAB_CACHE"
_FOLDER: Final = "llm-inference-lab"
_LOG: Final = logging.getLogger(__name__)
#: Folders that could not take something, and of which that was said.
_FULL: Final[set[Path]] = set()


def cache_folder() -> Path:
    """The folder for packed weights and calibrations; it is created when it is missing.

    Where it cannot be written, a temporary folder of this process serves instead, and the log says so:
    what is kept only saves time.
    """
    return _usable(lasting_folder())


def lasting_folder() -> Path:
    """The folder that the next process finds again; it may be missing, and may not be writable."""
    return Path(os.environ.get(CACHE_VARIABLE) or _default_folder())


@functools.cache
def _usable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        try:
            other = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-"))
        except OSError:  # no place to write at all: nothing is kept, and ``keep`` says so
            return folder
        _LOG.warning(
            "The cache folder %s must be writable (%s); %s is used for now. Set %s to another.",
            folder,
            problem.strerror,
            other,
            CACHE_VARIABLE,
        )
        return other
    return folder


def _default_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / _FOLDER
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / _FOLDER
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / _FOLDER


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then rename it into place.

    A reader sees the old file or the whole new one, whoever else writes or dies meanwhile.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it is gone when the rename succeeded
            temporary.unlink()


def keep(path: Path, write: Callable[[Path], object]) -> bool:
    """Keep in the cache folder what could be computed again; whether that was possible.

    A full disk costs time and not the answer. The log says so, once.
    """
    try:
        write_atomically(path, write)
    except OSError as problem:
        _say_not_kept(cache_folder(), str(problem.strerror or problem))
        return False
    return True


def _say_not_kept(folder: Path, why: str) -> None:
    if folder in _FULL:
        return
    _FULL.add(folder)
    _LOG.warning(
        "The cache folder %s must have room for what was computed; it cannot be kept (%s) and is computed "
        "again next time. Make room, or set %s to another folder.",
        folder,
        why,
        CACHE_VARIABLE,
    )
