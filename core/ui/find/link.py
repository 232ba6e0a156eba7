"""What the page's link holds beside the scenario: the limits, the load, and what to rank by.

Defaults are left out. A value that does not hold is replaced, and that is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from core.analytic.search.ranking import MEASURES, Measure
from core.ui.scenario.page_part import PagePart

#: Smallest and largest value of each number: milliseconds, and requests a second.
LIMITS: Final[dict[str, tuple[float, float]]] = {
    "ttft_ms": (1.0, 3_600_000.0),
    "tpot_ms": (0.01, 600_000.0),
    "requests_per_s": (0.001, 100_000.0),
}
_NAMES: Final = {
    "ttft_ms": "TTFT limit in milliseconds",
    "tpot_ms": "TPOT limit in milliseconds",
    "requests_per_s": "number of requests a second",
}
_KEYS: Final = {"ttft_ms": "ttft", "tpot_ms": "tpot", "requests_per_s": "rate"}
_BY: Final = "by"
_OWN: Final = frozenset({*_KEYS.values(), _BY})
#: How the link says that a number is not limited.
_ANY: Final = "any"
_LONGEST_NUMBER: Final = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked beside the scenario; None where there is no limit.

    Attributes:
        ttft_ms, tpot_ms: milliseconds that a user waits at most.
        requests_per_s: that arrive in all; None asks what one full replica does.
        by: what the list is ranked by.
    """

    ttft_ms: float | None = 1000.0
    tpot_ms: float | None = 50.0
    requests_per_s: float | None = None
    by: Measure = "cost"


def now() -> Asked:
    """What the visitor asks."""
    return _PART.now()


def notes() -> tuple[str, ...]:
    """What had to be repaired in the address; empty once something was changed."""
    return _PART.notes()


def adopt(*, comes_in: bool) -> None:
    """Bring what is asked in step with the address, see ``PagePart.adopt``."""
    _PART.adopt(comes_in=comes_in)


def set_number(name: str, value: object) -> None:
    """Change one number; what it cannot be is left as it was. Meant for callbacks.

    Args:
        name: one of ``LIMITS``.
        value: what the browser sent; None takes the limit away.
    """
    if value is None:
        _PART.change(replace(now(), **{name: None}))  # type: ignore[arg-type]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = LIMITS[name]
        if low <= value <= high:  # a browser's limits can be passed by
            _PART.change(replace(now(), **{name: float(value)}))  # type: ignore[arg-type]


def set_measure(value: object) -> None:
    """Rank by something else. Meant for callbacks."""
    known = next((measure for measure in MEASURES if measure == value), None)
    if known is not None:
        _PART.change(replace(now(), by=known))


def written(asked: Asked) -> dict[str, str]:
    """Query parameters; defaults are left out.

    >>> written(Asked(ttft_ms=None, tpot_ms=20.0))
    {'ttft': 'any', 'tpot': '20'}
    """
    default, params = Asked(), {}
    for name, key in _KEYS.items():
        value = getattr(asked, name)
        if value != getattr(default, name):
            params[key] = _ANY if value is None else f"{value:.15g}"
    return params if asked.by == default.by else {**params, _BY: asked.by}


def read(params: Mapping[str, str]) -> tuple[Asked, tuple[str, ...]]:
    """Read them back, with a sentence for each value that was replaced.

    >>> read({"tpot": "0"})[1]
    ("The TPOT limit in milliseconds must be from 0.01 to 600,000; the link says '0', so 0.01 is used.",)
    """
    asked, said = Asked(), []
    for name, key in _KEYS.items():
        if key in params:
            value, note = _number(name, params[key])
            asked = replace(asked, **{name: value})  # type: ignore[arg-type]
            said.append(note)
    by = params.get(_BY, asked.by)
    known = next((measure for measure in MEASURES if measure == by), None)
    if known is None:
        said.append(f"The list must be ranked by one of {', '.join(MEASURES)}; the link says {by[:40]!r}.")
    return replace(asked, by=known or asked.by), tuple(filter(None, said))


def _number(name: str, text: str) -> tuple[float | None, str]:
    default, (low, high) = getattr(Asked(), name), LIMITS[name]
    if text == _ANY:
        return None, ""
    try:
        value = float(text) if len(text) <= _LONGEST_NUMBER else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        instead = "none" if default is None else f"{default:,g}"
        return default, (
            f"The {_NAMES[name]} must be a number; the link says {text[:40]!r}, so {instead} is used."
        )
    clamped = min(max(value, low), high)
    if clamped == value:
        return value, ""
    return clamped, (
        f"The {_NAMES[name]} must be from {_whole(low)} to {_whole(high)}; the link says {text!r}, so "
        f"{_whole(clamped)} is used."
    )


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


_PART: Final = PagePart("find_link", _OWN, Asked(), read, written)
