"""The worked cases of ``tests/data/cases.jsonl``: answers known from engine logs, headers and derivations.

Each line has an id, an area, the public source, the input, the expected values with their units, the
tolerance and the derivation. Each area's tests take their own cases:

>>> len(cases("cost")) > 0
True
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

Case = dict[str, Any]


@cache
def _all() -> tuple[Case, ...]:
    lines = (Path(__file__).parent / "data" / "cases.jsonl").read_text().splitlines()
    return tuple(json.loads(line) for line in lines)


def cases(*areas: str) -> list[Case]:
    """The cases of some areas ("kv", "memory", "parallelism", ...); of all without an argument."""
    return [case for case in _all() if not areas or case["area"] in areas]


def case(id: str) -> Case:
    """One case."""
    return next(case for case in _all() if case["id"] == id)


def relative_tolerance(case: Case) -> float:
    """How far off an answer may be; rounding of floats alone where the case says "exact"."""
    return float(case["tolerance"].get("value", 1e-12))
