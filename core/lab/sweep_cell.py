"""One cell of a sweep: its prediction with its range, the samples, and how quiet the machine was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from core.lab.checked_json import Reader, utc_time
from core.lab.record_parts import PHASES, LoadRecord
from core.lab.request import CACHES, EMBEDDED_MODEL
from core.lab.sweep_request import Cell
from core.lab.timing import Spread, spread

#: What is predicted and measured of each cell.
METRICS: Final = ("ttft", "tpot", "end_to_end")
_MOST_S: Final = 1e6
_LEAST_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted time, where 80 of 100 measurements are expected, and what nothing can be faster than."""

    value_s: float
    low_s: float
    high_s: float
    floor_s: float

    @classmethod
    def from_reader(cls, reader: Reader) -> Estimate:
        """Read it back, or raise a RecordError."""
        value_s = reader.number("value_s", _LEAST_S, _MOST_S)
        return cls(
            value_s,
            reader.number("low_s", 0, value_s),
            reader.number("high_s", value_s, _MOST_S),
            reader.number("floor_s", 0, _MOST_S),
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a cell was predicted to take, before it ran.

    Attributes:
        times: metric -> estimate. operators_s: phase -> operator -> seconds, of all prefill steps and of the
            mean decode step; "step" is what a step costs besides its operators.
        weight_bytes: stored. kv_bytes: of the cache at its fullest.
        outside: in what the cell lies outside of what was calibrated, as clauses.
    """

    times: dict[str, Estimate]
    operators_s: dict[str, dict[str, float]]
    weight_bytes: float
    kv_bytes: float
    outside: tuple[str, ...]

    @classmethod
    def from_reader(cls, reader: Reader) -> Forecast:
        """Read it back, or raise a RecordError."""
        times, operators = reader.inner("times"), reader.inner("operators_s")
        return cls(
            times={name: Estimate.from_reader(times.inner(name)) for name in METRICS},
            operators_s={phase: operators.number_map(phase, 0, _MOST_S) for phase in PHASES},
            weight_bytes=reader.number("weight_bytes", 0, 1e15),
            kv_bytes=reader.number("kv_bytes", 0, 1e15),
            outside=reader.texts("outside"),
        )


@dataclass(frozen=True, slots=True)
class CellQuality:
    """How far a pair of formats moves the embedded model from the same model in fp32.

    Attributes:
        kl: mean Kullback-Leibler divergence of the next token's distribution, nats. agreement: part of the
            positions at which the likeliest token is the same. perplexity: on the shipped text.
        tokens: positions judged.
    """

    kl: float
    agreement: float
    perplexity: float
    tokens: int

    @classmethod
    def from_reader(cls, reader: Reader) -> CellQuality:
        """Read it back, or raise a RecordError."""
        return cls(
            kl=reader.number("kl", 0, 1e6),
            agreement=reader.number("agreement", 0, 1),
            perplexity=reader.number("perplexity", 1, 1e18),
            tokens=reader.whole("tokens", 1, 1_000_000),
        )


@dataclass(frozen=True, slots=True)
class SweptCell:
    """One cell, predicted and run, or the reason why it could not be.

    Attributes:
        cell: its settings. measured_at: ISO time, UTC. calibration: id of the one that was used.
        problem: why it has no numbers, as a sentence; empty where it has.
        forecast: made before the samples; None where there is a problem.
        samples: metric -> seconds, one for each repeat. load: the machine beside them.
        noisy: why no verdict may be drawn. tries: how often it was run until it was quiet. unsteady: runs
            beside which the cores changed their speed; samples are without them where enough others are left.
        quality: of its formats; None where nobody asked, or it is not known yet.
    """

    cell: Cell
    measured_at: str
    calibration: str = ""
    problem: str = ""
    forecast: Forecast | None = None
    samples: dict[str, tuple[float, ...]] | None = None
    load: LoadRecord | None = None
    noisy: tuple[str, ...] = ()
    tries: int = 1
    quality: CellQuality | None = None
    unsteady: int = 0

    @property
    def can_be_judged(self) -> bool:
        """Whether its formats have a quality: weights that are random have none."""
        return self.cell.model == EMBEDDED_MODEL and not self.problem

    def predicted(self, metric: str) -> Estimate | None:
        """The prediction of one of ``METRICS``; None where there is a problem."""
        return self.forecast.times[metric] if self.forecast else None

    def measured(self, metric: str) -> Spread | None:
        """Median, p10 and p90 of one of ``METRICS``; None where there is a problem."""
        return spread(self.samples[metric]) if self.samples else None

    def error(self, metric: str) -> float | None:
        """``predicted / measured - 1``; None where there is a problem."""
        predicted, measured = self.predicted(metric), self.measured(metric)
        return predicted.value_s / measured.median_s - 1 if predicted and measured else None

    def is_in_range(self, metric: str) -> bool:
        """Whether the measured median lies in the predicted range."""
        predicted, measured = self.predicted(metric), self.measured(metric)
        return bool(predicted and measured and predicted.low_s <= measured.median_s <= predicted.high_s)

    def with_quality(self, quality: CellQuality) -> SweptCell:
        """The same cell, judged."""
        return replace(self, quality=quality)

    def to_json(self) -> dict[str, Any]:
        """A plain object (lists, not tuples)."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain

    @classmethod
    def from_reader(cls, reader: Reader) -> SweptCell:
        """Read a cell back.

        Raises:
            RecordError: a value is missing, of another type, or out of its bounds.
        """
        problem = reader.text("problem")
        quality = reader.data.get("quality")
        return cls(
            cell=cell_from(reader.inner("cell")),
            measured_at=utc_time(reader, "measured_at"),
            calibration=reader.text("calibration"),
            problem=problem,
            forecast=None if problem else Forecast.from_reader(reader.inner("forecast")),
            samples=None if problem else _samples(reader.inner("samples")),
            load=None if problem else LoadRecord.from_reader(reader.inner("load")),
            noisy=reader.texts("noisy"),
            tries=reader.whole("tries", 1, 1000),
            quality=None if quality is None else CellQuality.from_reader(reader.inner("quality")),
            unsteady=reader.whole("unsteady", 0, 1000) if "unsteady" in reader.data else 0,
        )


def _samples(reader: Reader) -> dict[str, tuple[float, ...]]:
    samples = {name: reader.numbers(name, _LEAST_S, _MOST_S) for name in METRICS}
    first, *others = (len(values) for values in samples.values())
    if first == 0 or any(count != first for count in others):
        reader.refuse("samples", "as many values, one or more, of each metric")
    return samples


def cell_from(reader: Reader) -> Cell:
    """Read a cell's settings back; a RecordError where they do not fit."""
    cache = reader.text("cache", CACHES)
    return Cell(
        model=reader.text("model"),
        weights=reader.text("weights"),
        kv=reader.text("kv"),
        cache=next(known for known in CACHES if known == cache),
        batch=reader.whole("batch", 1),
        prompt_tokens=reader.whole("prompt_tokens", 1),
        new_tokens=reader.whole("new_tokens", 1),
    )
