"""What was read from a GGUF file: in memory right after, and mapped from its copy on disk later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from core.engine.files.weight import Weight
from core.storage import keep


class Content(Protocol):
    """What a GGUF file holds: tensors as Weights, metadata as strings."""

    metadata: dict[str, str]

    def weight(self, name: str) -> Weight:
        """Give the tensor of this name."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, in weights."""


class Converted:
    """What was just read from a GGUF file, in memory."""

    def __init__(self, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        self._tensors, self.metadata = tensors, metadata
        self._encodings: dict[str, str] = json.loads(metadata["encodings"])

    def weight(self, name: str) -> Weight:
        """Give the tensor of this name."""
        return Weight(self._tensors[name], self._encodings.get(name, "plain"))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, in weights."""
        return {name: self.weight(name).shape for name in self._tensors}

    def keep(self, copy: Path) -> bool:
        """Write the copy that the next load maps into memory; whether there is room for it."""
        return keep(copy, self._save)

    def _save(self, file: Path) -> None:
        try:
            save_file(self._tensors, file, self.metadata)
        except SafetensorError as problem:  # the library's name for a disk that is full
            raise OSError(str(problem)) from problem


class SafetensorsFile:
    """The copy of a GGUF file, mapped into memory."""

    def __init__(self, path: Path) -> None:
        self._file: Any = safe_open(path, framework="pt")
        self.metadata: dict[str, str] = self._file.metadata() or {}  # type: ignore[no-untyped-call]
        self._encodings: dict[str, str] = json.loads(self.metadata["encodings"])

    def weight(self, name: str) -> Weight:
        """Give the tensor of this name; a copy, since the file may change while the model runs."""
        return Weight(self._file.get_tensor(name).clone(), self._encoding(name))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, in weights."""
        names = self._file.keys()
        return {name: Weight(self._file.get_tensor(name), self._encoding(name)).shape for name in names}

    def _encoding(self, name: str) -> str:
        return self._encodings.get(name, "plain")
