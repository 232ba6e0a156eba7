"""The ranges of the planner's times in words, and why they are wider where the data end."""

from __future__ import annotations

from core.analytic.plan_value import PlanValue, value_of
from core.analytic.prediction_range import Range
from core.ui.planner.found import Found
from core.units import format_seconds, significant


def value(found: Found) -> PlanValue:
    """What the plan's times are worth, with list prices."""
    case = found.case
    return value_of(found.plan, case.scenario, case.model, case.machine, found.chip)


def between(found: Range | None) -> str:
    """A range of times; empty where there is none.

    >>> between(Range(0.0071, 0.0089)), between(Range(0.9, 1.2))
    ('7.10 to 8.90 ms', '900 ms to 1.20 s')
    """
    if found is None:
        return ""
    low, high = format_seconds(found.low_s), format_seconds(found.high_s)
    number, _, unit = low.rpartition(" ")
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def rates_between(found: Range | None, batch: int) -> str:
    """The tokens a second that a range of TPOT means for a batch; empty where there is none.

    >>> rates_between(Range(0.008, 0.010), 2)
    '200 to 250'
    """
    if found is None:
        return ""
    return f"{significant(batch / found.high_s)} to {significant(batch / found.low_s)}"


def sentence(worth: PlanValue, batch: int) -> str:
    """All ranges and what they hold; empty where nothing is timed or the machine was measured."""
    if worth.ttft is None:
        return ""
    said = [f"TTFT {between(worth.ttft)}"]
    if worth.tpot is not None:
        said += [f"TPOT {between(worth.tpot)}", f"{rates_between(worth.tpot, batch)} tokens/s"]
    text = f"Four published measurements in five lie in ranges like these: {', '.join(said)}."
    reasons = worth.ttft.reasons
    if not reasons:
        return text
    return f"{text} This scenario lies outside the data, so they are wider: {'; '.join(reasons)}."
