"""Two scenarios side by side: each quantity, the factor between them, and a verdict in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.analytic.plan import Plan
from core.analytic.planner_room import Case, users_that_fit
from core.units import format_gib, format_seconds, significant

Better = Literal["first", "second", "same", "unknown"]

#: Differences of less than this are none.
_SAME: Final = 1.005


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity of two plans; a value is None where it cannot be said.

    Attributes:
        name: what it is. unit: "s", "B", "tokens/s" or "users". lower_is_better: whether less is good.
    """

    name: str
    unit: str
    first: float | None
    second: float | None
    lower_is_better: bool

    @property
    def factor(self) -> float | None:
        """Second / first; None where either is unknown or the first is zero."""
        if self.first is None or self.second is None or self.first == 0:
            return None
        return self.second / self.first

    @property
    def better(self) -> Better:
        """Which of the two is better."""
        if self.first is None or self.second is None:
            return "unknown"
        low, high = sorted((self.first, self.second))
        if high <= low * _SAME:
            return "same"
        return "second" if (self.second < self.first) == self.lower_is_better else "first"

    def text(self, value: float | None) -> str:
        """A value with its unit."""
        if value is None:
            return "unknown"
        if self.unit == "s":
            return format_seconds(value)
        if self.unit == "B":
            return format_gib(value)
        return f"{value:,.0f} {self.unit}" if self.unit == "users" else f"{significant(value)} {self.unit}"


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Two plans: their differences, in a fixed order, and a sentence or two."""

    rows: tuple[Difference, ...]
    sentence: str


def compare_plans(first: Case, second: Case) -> PlanComparison:
    """Plan two scenarios and compare them: memory is that of the fullest chip, users and rate are of all.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> from core.catalog.scenario import Scenario
    >>> now = Case(Scenario(), model("llama-3.1-8b"), machine_from(accelerator("h100-sxm-80gb")))
    >>> compare_plans(now, now).sentence
    'Both fit. The two do not differ.'
    """
    plans = (first.planned().plan, second.planned().plan)
    users = (_users(first), _users(second))
    rows = (
        Difference("memory", "B", _memory(plans[0]), _memory(plans[1]), lower_is_better=True),
        Difference("users that fit", "users", *users, lower_is_better=False),
        Difference("TTFT", "s", plans[0].ttft_s, plans[1].ttft_s, lower_is_better=True),
        Difference("TPOT", "s", plans[0].tpot_s, plans[1].tpot_s, lower_is_better=True),
        Difference("end to end", "s", plans[0].end_to_end_s, plans[1].end_to_end_s, lower_is_better=True),
        Difference(
            "rate", "tokens/s", _rate(first, plans[0]), _rate(second, plans[1]), lower_is_better=False
        ),
    )
    return PlanComparison(rows, f"{_fit_sentence(*plans)} {_speed_sentence(rows)}")


def _memory(made: Plan) -> float | None:
    return None if made.memory is None else float(made.memory.total_bytes)


def _users(case: Case) -> int | None:
    """On all replicas together."""
    found = users_that_fit(case)
    return None if found is None else found * case.replicas


def _rate(case: Case, made: Plan) -> float | None:
    """Of all replicas together."""
    return None if made.tokens_per_s is None else made.tokens_per_s * case.replicas


def _fit_sentence(first: Plan, second: Plan) -> str:
    match (first.fits, second.fits):
        case (True, True):
            return "Both fit."
        case (False, False):
            return "Neither fits."
        case (True, False):
            return "Only the first fits."
        case (False, True):
            return "Only the second fits."
    return "Whether both fit is unknown."


def _speed_sentence(rows: tuple[Difference, ...]) -> str:
    by_name = {row.name: row for row in rows}
    words = {"TPOT": "writes a token", "TTFT": "starts its answer", "users that fit": "holds"}
    parts = []
    for name, verb in words.items():
        row = by_name[name]
        if row.better not in {"first", "second"} or not row.first or not row.second:
            continue
        factor = significant(max(row.first, row.second) / min(row.first, row.second))
        what = f"{factor} × as many users" if name == "users that fit" else f"{factor} × as fast"
        parts.append(f"the {row.better} {verb} {what}")
    if not parts:
        return (
            "The two do not differ." if all(row.better == "same" for row in rows) else "No speed to compare."
        )
    text = ", ".join(parts)
    return text[0].upper() + text[1:] + "."
