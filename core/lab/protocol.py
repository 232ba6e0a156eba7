"""What the server and its worker say to each other: one JSON object a line, never a pickle.

A line from the other side is data to be checked. It has a type, the fields that the type needs,
finite numbers, and a bounded length; anything else is a ``ProtocolError``, and the client
replaces the worker that sent it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from core.units import MIB

#: Longest line either side accepts. A run record of the longest run is well below it.
MAX_LINE_BYTES: Final = 4 * MIB

_NUMBER: Final = (int, float)

#: Server to worker: type -> the fields it must have.
REQUESTS: Final[Mapping[str, Mapping[str, type | tuple[type, ...]]]] = {
    "job": {"id": str, "kind": str, "payload": dict},
    "cancel": {"id": str},
    "count": {"id": str, "request": dict},
}

#: Worker to server.
REPLIES: Final[Mapping[str, Mapping[str, type | tuple[type, ...]]]] = {
    "warming": {"phase": str},
    "broken": {"message": str},
    "ready": {"info": dict},
    "calibrated": {"calibration": dict},
    "progress": {"id": str, "phase": str},
    "step": {"id": str, "text": str, "step": dict},
    "part": {"id": str, "part": dict},
    "done": {"id": str, "result": dict},
    "failed": {"id": str, "message": str},
    "cancelled": {"id": str},
    "counted": {"id": str, "tokens": (int, type(None))},
}


class ProtocolError(Exception):
    """The other process sent something that is not a message."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Write one message as a line.

    Raises:
        ProtocolError: it holds something that JSON cannot say, or is longer than a line may be.
    """
    try:
        text = json.dumps(message, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"a message could not be written as JSON: {error}") from error
    line = text.encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"a message has {len(line):,} bytes; the limit is {MAX_LINE_BYTES:,}")
    return line


def decode(line: bytes, known: Mapping[str, Mapping[str, type | tuple[type, ...]]]) -> dict[str, Any]:
    """Read one line and check it against the ``known`` messages.

    Raises:
        ProtocolError: it is not such a message; the text says what was wrong, never what it held.
    """
    if len(line) > MAX_LINE_BYTES or not line.endswith(b"\n"):
        raise ProtocolError("a line is too long or was cut short")
    try:
        message = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a line is not JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a line is not an object with a type")
    fields = known.get(message["type"])
    if fields is None:
        raise ProtocolError("a message has an unknown type")
    for name, expected in fields.items():
        if not isinstance(message.get(name, ...), expected):
            raise ProtocolError(f"a {message['type']!r} message lacks {name!r}, or it is of another type")
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
