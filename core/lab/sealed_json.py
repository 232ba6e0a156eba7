"""A saved object with a checksum over all of it, so that a change by hand is found out."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from core.errors import RecordError
from core.lab.checked_json import Reader


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The same as plain JSON holds it (lists, not tuples), with its checksum.

    >>> sealed({"a": (1, 2)})["a"]
    [1, 2]
    """
    plain: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return {**plain, "checksum": checksum(plain)}


def opened(data: object, what: str, schema: str, version: int) -> Reader:
    """A sealed object of one kind and version, ready to be read.

    Raises:
        RecordError: it is no object, another kind or version, or was changed since it was sealed.
    """
    reader = Reader(data, what)
    reader.text("schema", (schema,))
    reader.whole("version", version, version)
    check_seal(reader)
    return reader


def check_seal(reader: Reader) -> None:
    """Check that an object is as it was sealed.

    Raises:
        RecordError: it has no checksum, or that of another content.
    """
    content = {name: value for name, value in reader.data.items() if name != "checksum"}
    if reader.text("checksum") != checksum(content):
        raise RecordError(
            f"{reader.what} must be as the app saved it; this one was changed since (its checksum differs), "
            "so its numbers cannot be trusted. Load the file that was saved."
        )


def checksum(content: dict[str, Any]) -> str:
    """The SHA-256 of plain JSON, whatever the order of its names."""
    text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
