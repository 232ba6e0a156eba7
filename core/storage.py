"""Where the project keeps what it computed for this machine: the user's cache folder.

Everything in it can be deleted at any time; it is made again when it is needed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: An environment variable that moves the folder (tests use it, and hosts with a data disk).
CACHE_VARIABLE: Final = "LLM_LAB_CACHE"
_FOLDER: Final = "llm-inference-lab"


def cache_folder() -> Path:
    """The folder for packed weights and calibrations; it is created when it is missing."""
    folder = Path(os.environ.get(CACHE_VARIABLE) or _default_folder())
    folder.mkdir(parents=True, exist_ok=True)
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
