"""The library of our C++ kernels: compiled when it is first needed, kept, and checked before it is loaded.

A library that was cut short kills the process that loads it, so its name carries a digest of what is in
it. One that does not agree with its name, or lacks a function, is damaged: it is removed and compiled anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from core.engine.waiting import waiting_for
from core.storage import cache_folder, keep

_FOLDER: Final = Path(__file__).parent
_SOURCES: Final = ("cpu_kernels.cpp", "cpu_attention.cpp", "cpu_step.cpp")
_HEADERS: Final = (
    *("cpu_lanes.h", "cpu_pairs.h", "cpu_matrix.h", "cpu_products.h", "cpu_pair_products.h"),
    *("cpu_many.h", "cpu_attention.h"),
)
_COMPILERS: Final = ("g++", "clang++", "c++")
#: The order of sums is that of the source, so that a row has the same result in every company.
_FLAGS: Final = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-fopenmp",
    "-fPIC",
)
_COMPILE_S: Final = 180.0
_NAME: Final = "cpu-kernels-"
Bound = TypeVar("Bound")


def load(bind: Callable[[ctypes.CDLL], Bound]) -> Bound:
    """Load the kept library, or compile it where there is none that is whole.

    Args:
        bind: takes the functions out of the library; an AttributeError says that it lacks one.

    Raises:
        OSError: there is no compiler, or nowhere to write. SubprocessError: it failed or took too long.
    """
    for file in sorted(_kept_in().glob(f"{_name()}-*.so")):
        with contextlib.suppress(OSError, AttributeError):
            if file.stem == f"{_name()}-{_digest(file.read_bytes())}":
                return bind(ctypes.CDLL(str(file)))
        _remove(file)
    return _compiled(bind)


def _compiled(bind: Callable[[ctypes.CDLL], Bound]) -> Bound:
    compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise FileNotFoundError(f"none of {', '.join(_COMPILERS)} is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "kernels.so"
        with waiting_for("compiling the kernels, once"):
            _compile(compiler, made)
        content = made.read_bytes()
        file = _kept_in() / f"{_name()}-{_digest(content)}.so"
        kept = keep(file, lambda path: path.write_bytes(content))
        if kept:
            _remove_older()
        return bind(ctypes.CDLL(str(file if kept else made)))


def _compile(compiler: str, target: Path) -> None:
    """Compile the sources side by side, then join them."""
    objects = [target.with_name(f"{name}.o") for name in _SOURCES]
    commands = [
        [compiler, *_FLAGS, "-c", str(_FOLDER / name), "-o", str(made)]
        for name, made in zip(_SOURCES, objects, strict=True)
    ]
    with ThreadPoolExecutor() as several:
        list(several.map(_run, commands))
    _run([compiler, "-fopenmp", "-shared", *(str(made) for made in objects), "-o", str(target)])


def _run(command: list[str]) -> None:
    # Nothing in the command comes from a user: a found compiler, our flags, our source.
    subprocess.run(command, check=True, capture_output=True, timeout=_COMPILE_S)  # noqa: S603


def _remove_older() -> None:
    """Remove libraries of other sources; those of this one for other processors stay."""
    for file in _kept_in().glob(f"{_NAME}*.so"):
        if not file.name.startswith(f"{_NAME}{_source()}-"):
            _remove(file)


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):  # another process was faster, or the folder is read-only
        file.unlink()


def _kept_in() -> Path:
    return cache_folder() / "kernels"


def _name() -> str:
    """Source and processor: code for one may not run on another. The digest of the library follows."""
    return f"{_NAME}{_source()}-{_processor()}"


def _source() -> str:
    """The sources and the flags."""
    sources = "".join((_FOLDER / name).read_text() for name in (*_SOURCES, *_HEADERS))
    return _digest(f"{sources}{_FLAGS}".encode())


def _processor() -> str:
    """What the processor can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = [f"flags {platform.processor()} {platform.machine()}"]
    able = next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
    return _digest(able.encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
