"""The embedded model, loaded once for each combination of formats that tests ask for."""

from functools import cache

import pytest

from core.engine.engine import CacheKind, Engine
from core.engine.files.models import EMBEDDED, embedded_file
from core.errors import CheckpointError


@cache
def embedded(weights: str = "fp32", kv: str = "fp32", kind: CacheKind = "contiguous") -> Engine:
    """An engine of the embedded model; the test is skipped where its package is not installed."""
    try:
        embedded_file()
    except CheckpointError as missing:
        pytest.skip(str(missing))
    return Engine.load(EMBEDDED, weights=weights, kv=kv, cache=kind, threads=1)
