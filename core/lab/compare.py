"""Measured beside predicted: by step, by operator, with the spread, and one sentence on why.

The ratio is measured / predicted: above 1 the machine was slower than predicted. From a noisy run
no verdict is drawn; its range is only shown, and wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from core.lab.predict import Prediction
from core.lab.record import RunRecord
from core.lab.timing import Spread, spread
from core.units import format_seconds, significant

#: How far measured may be from predicted until the two are said to differ.
TPOT_TOLERANCE: Final = 0.15
TTFT_TOLERANCE: Final = 0.25
#: An end of a noisy run's range is its ratio to the median to this power.
_NOISY_FACTOR: Final = 2.0
#: An operator that explains this part of the gap is named.
_SHARE: Final = 0.3

Verdict = Literal["agrees", "differs", "noisy"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quantity, predicted and measured, in seconds; p10 and p90 of the measured samples."""

    name: str
    predicted_s: float
    measured_s: float
    low_s: float
    high_s: float

    @property
    def ratio(self) -> float:
        """Measured / predicted."""
        return self.measured_s / self.predicted_s

    @property
    def range(self) -> tuple[float, float]:
        """The ratio at p10 and at p90."""
        return self.low_s / self.predicted_s, self.high_s / self.predicted_s

    @property
    def gap_s(self) -> float:
        """Measured - predicted."""
        return self.measured_s - self.predicted_s

    def agrees_within(self, tolerance: float) -> bool:
        """Whether the measured median is within a part of the predicted value."""
        return abs(self.ratio - 1.0) <= tolerance


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run's prediction against its measurement.

    Attributes:
        ttft: the first step; its spread is of the repeated prefills.
        tpot: the mean later step against the median of the repeated ones, each with what lies between two;
            None for one token.
        steps: each step of the visible run against its own prediction, in order.
        prefill, decode: by operator, in execution order; empty where nothing was profiled.
        verdict: "agrees", "differs", or "noisy" where none is drawn.
        sentence: what it comes to, and why where the two differ.
    """

    ttft: Ratio
    tpot: Ratio | None
    steps: tuple[Ratio, ...]
    prefill: tuple[Ratio, ...]
    decode: tuple[Ratio, ...]
    verdict: Verdict
    sentence: str


def compare(record: RunRecord) -> Comparison:
    """Compare one run with what was predicted for it."""
    prediction, noisy = record.prediction, bool(record.noisy)
    ttft = _ratio("TTFT", prediction.ttft_s, record.prefill_spread, noisy)
    tpot = None
    if prediction.tpot_s is not None and record.token_spread is not None:
        tpot = _ratio("TPOT", prediction.tpot_s, record.token_spread, noisy)
    verdict = _verdict(ttft, tpot, noisy)
    return Comparison(
        ttft=ttft,
        tpot=tpot,
        steps=_steps(record),
        prefill=_operators(record, "prefill"),
        decode=_operators(record, "decode"),
        verdict=verdict,
        sentence=_sentence(record, verdict, ttft, tpot),
    )


def _steps(record: RunRecord) -> tuple[Ratio, ...]:
    later_from, between_s = len(record.prefill_steps), record.between_steps_s
    rows = []
    for place, (step, predicted_s) in enumerate(zip(record.steps, record.prediction.step_s, strict=False)):
        seen_s = step.host_s + (between_s if place >= later_from else 0.0)
        rows.append(Ratio(f"step {step.index}", predicted_s, seen_s, seen_s, seen_s))
    return tuple(rows)


def prediction_beside(record: RunRecord) -> Prediction:
    """A run's prediction with its MBU over the bandwidth that was measured beside the run, as the run's own.

    Over the bandwidth of the calibration, which is of another moment, the two shares would say something
    else than the two rates in tokens a second.
    """
    return replace(record.prediction, bandwidth_bytes_per_s=record.load.bandwidth_bytes_per_s)


def _ratio(name: str, predicted_s: float, samples: Spread, noisy: bool) -> Ratio:
    factor = _NOISY_FACTOR if noisy else 1.0
    low_s, high_s = (_farther(samples.median_s, end_s, factor) for end_s in (samples.p10_s, samples.p90_s))
    return Ratio(name, predicted_s, samples.median_s, low_s, high_s)


def _farther(middle_s: float, end_s: float, factor: float) -> float:
    """An end of a range, moved out by a power of its ratio to the middle: no time falls below zero.

    >>> _farther(0.2, 0.1, 2.0), _farther(0.2, 0.4, 2.0)
    (0.05, 0.8)
    """
    return middle_s * (end_s / middle_s) ** factor if middle_s > 0 else end_s


def _operators(record: RunRecord, phase: str) -> tuple[Ratio, ...]:
    """The operators that were both predicted and profiled, in execution order.

    Timing each operator makes the profiled pass slower than a plain one, so that its times are scaled
    to what the plain pass took besides its fixed cost.
    """
    prefill = phase == "prefill"
    predicted = record.prediction.prefill if prefill else record.prediction.decode
    plain = record.prefill_spread if prefill else record.token_spread
    measured = {name: spread(times_s) for name, times_s in record.measured.operators_s.get(phase, {}).items()}
    if predicted is None or plain is None or not measured:
        return ()
    profiled_s = sum(summary.median_s for summary in measured.values())
    scale = min((plain.median_s - predicted.fixed_s) / profiled_s, 1.0) if profiled_s > 0 else 1.0
    return tuple(
        _ratio(name, predicted_s, _scaled(measured[name], max(scale, 0.0)), noisy=False)
        for name, predicted_s in predicted.operators_s.items()
        if name in measured and predicted_s > 0
    )


def _scaled(times: Spread, factor: float) -> Spread:
    return Spread(times.median_s * factor, times.p10_s * factor, times.p90_s * factor, times.count)


def _verdict(ttft: Ratio, tpot: Ratio | None, noisy: bool) -> Verdict:
    if noisy:
        return "noisy"
    if not ttft.agrees_within(TTFT_TOLERANCE):
        return "differs"
    return "agrees" if tpot is None or tpot.agrees_within(TPOT_TOLERANCE) else "differs"


def _sentence(record: RunRecord, verdict: Verdict, ttft: Ratio, tpot: Ratio | None) -> str:
    if verdict == "noisy":
        return f"No verdict, because this run is noisy: {'; '.join(record.noisy)}. Run again on a quiet host."
    figures = " and ".join(
        f"{ratio.name} is {significant(ratio.ratio)} x the prediction" for ratio in (tpot, ttft) if ratio
    )
    if verdict == "agrees":
        return f"Measured and predicted agree: {figures}."
    tpot_differs = tpot is not None and not tpot.agrees_within(TPOT_TOLERANCE)
    worst, phase = (tpot, "decode") if tpot is not None and tpot_differs else (ttft, "prefill")
    return f"Measured and predicted differ: {figures}. {_why(record, worst, _operators(record, phase))}"


def _why(record: RunRecord, whole: Ratio, rows: Sequence[Ratio]) -> str:
    """The likeliest reason, from what can be seen: one operator, or what is between them."""
    named = [row for row in rows if row.gap_s * whole.gap_s > 0]
    worst = max(named, key=lambda row: abs(row.gap_s), default=None)
    if worst is not None and worst.gap_s / whole.gap_s >= _SHARE:
        return (
            f"Most of the {format_seconds(abs(whole.gap_s))} between them is in {worst.name!r}, which takes "
            f"{significant(worst.ratio)} x what the calibration led to expect for such shapes."
        )
    if not rows:
        return "This run was not profiled by operator, so it cannot say where the time went."
    return (
        f"No single operator explains the {format_seconds(abs(whole.gap_s))} between them: it is spread over "
        "many operators or lies between them."
    )
