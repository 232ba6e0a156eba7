"""A served trace as one JSON file, and back through its checks."""

from __future__ import annotations

import json
from typing import Final

from core.lab.checked_json import parse
from core.lab.serve_record import ServeRecord
from core.units import MB

SCHEMA: Final = "llm-inference-lab/served-trace"
VERSION: Final = 1
MOST_MB: Final = 4
_WHAT: Final = "A served trace"


def dumps(record: ServeRecord) -> str:
    """The record as JSON."""
    content = {"schema": SCHEMA, "version": VERSION, **record.to_json()}
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def loads(text: str | bytes) -> ServeRecord:
    """Read a record back.

    Raises:
        RecordError: it is too large, not JSON, another file, or does not hold together.
    """
    reader = parse(text, _WHAT, MOST_MB * MB)
    reader.text("schema", (SCHEMA,))
    reader.whole("version", VERSION, VERSION)
    return ServeRecord.from_json(reader.data)
