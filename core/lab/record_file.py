"""A record as the text of a file, and back through its checks; nothing in a file is executed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from core.errors import RecordError
from core.lab.checked_json import parse
from core.storage import write_atomically
from core.units import MB


class Saved(Protocol):
    """Anything that can say itself as a plain object."""

    def to_json(self) -> dict[str, Any]:
        """A plain object."""


Record = TypeVar("Record", bound=Saved)


@dataclass(frozen=True, slots=True)
class RecordFile(Generic[Record]):
    """How records of one kind are written and read.

    Attributes:
        what: the kind in sentences, for example "A run record". from_json: checks and reads one.
        most_bytes: that a file may have. advice: what to do about a larger one.
    """

    what: str
    from_json: Callable[[object], Record]
    most_bytes: int
    advice: str

    def dumps(self, record: Record) -> str:
        """Write a record as the text of its file.

        Raises:
            RecordError: it would be larger than a record may be.
        """
        text = json.dumps(record.to_json(), allow_nan=False, indent=1)
        if len(text.encode()) > self.most_bytes:
            most = f"{self.most_bytes // MB} MB"
            raise RecordError(f"{self.what} may have up to {most}; this one would be larger. {self.advice}")
        return text

    def loads(self, text: str | bytes) -> Record:
        """Read a record from the text of its file.

        Raises:
            RecordError: it is too large, cut short, of another version, or was changed.
        """
        return self.from_json(parse(text, self.what, self.most_bytes).data)

    def save(self, record: Record, path: Path) -> None:
        """Write a record to a file, whole or not at all."""
        text = self.dumps(record)
        write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def load(self, path: Path) -> Record:
        """Read a record from a file; no more of it than a record may have.

        Raises:
            RecordError: there is no such file, or it does not hold a whole record.
        """
        try:
            with path.open("rb") as file:
                return self.loads(file.read(self.most_bytes + 1))
        except OSError as error:
            raise RecordError(
                f"A record must be a file that can be read; {path} cannot ({error.strerror}). Check its name."
            ) from error
