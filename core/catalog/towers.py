"""Vision and audio encoders beside a text model: how many parameters they have, as far as a config tells."""

from __future__ import annotations

from collections.abc import Mapping

from core.catalog.fields import Fields
from core.catalog.model import Part


def towers(config: Mapping[str, object], text: Fields) -> tuple[Part, ...]:
    """The encoders that a config describes."""
    return ()
