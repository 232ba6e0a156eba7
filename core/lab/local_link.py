"""What processes of one machine reach when they exchange tensors, as a full calibration timed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.analytic.collectives import Collective, LinkSpeed, fastest_s
from core.catalog.accelerator import THIS_COMPUTER, Link
from core.lab.checked_json import Reader, utc_time

ExchangeKind = Literal["all_reduce", "all_gather"]
KINDS: Final[tuple[ExchangeKind, ...]] = get_args(ExchangeKind)
#: A bandwidth that never limits: where larger messages took no more time.
_UNLIMITED: Final = 1e15
_LONGEST_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class ExchangeSample:
    """Exchanges of one kind and size, over all processes.

    Attributes:
        kind: what is exchanged. message_bytes: of one, as ``core.analytic.collectives`` counts them.
        median_s, p10_s, p90_s: seconds of one.
    """

    kind: ExchangeKind
    message_bytes: int
    median_s: float
    p10_s: float
    p90_s: float

    @property
    def spread(self) -> float:
        """Half of p10 to p90, as a part of the median."""
        return (self.p90_s - self.p10_s) / (2 * self.median_s)


@dataclass(frozen=True, slots=True)
class LocalLink:
    """The link between processes of this machine: the law that its samples follow, and the samples.

    Between two processes the fixed cost of a call and the latency of its one step are the same thing, so
    the latency holds both.

    Attributes:
        measured_at: ISO time, UTC. backend: how the processes talked ("gloo"). ranks: how many there were.
        latency_s: of an exchange of no bytes. bytes_per_s: that a process sends, one way.
        spread: half of p10 to p90 over the median, the middle one over the samples.
        misfit: how far samples lie from the law, as a part of them, the middle one.
        samples: what it was fitted to.
    """

    measured_at: str
    backend: str
    ranks: int
    latency_s: float
    bytes_per_s: float
    spread: float
    misfit: float
    samples: tuple[ExchangeSample, ...]

    @property
    def speed(self) -> LinkSpeed:
        """What it does for a collective."""
        return LinkSpeed(self.bytes_per_s, self.latency_s)

    def link(self) -> Link:
        """The link as a machine has it."""
        return Link(
            id=THIS_COMPUTER,
            name=f"processes of this computer over {self.backend}",
            bandwidth_bytes_per_s=self.bytes_per_s,
            latency_s=self.latency_s,
            source="a full calibration of this computer",
            date=self.measured_at[:10],
        )

    def to_json(self) -> dict[str, Any]:
        """A plain object (lists, not tuples)."""
        return {**asdict(self), "samples": [asdict(sample) for sample in self.samples]}

    @classmethod
    def from_reader(cls, reader: Reader) -> LocalLink:
        """Read it back, or raise a RecordError."""
        return cls(
            measured_at=utc_time(reader, "measured_at"),
            backend=reader.text("backend"),
            ranks=reader.whole("ranks", 2, 4096),
            latency_s=reader.number("latency_s", 0, _LONGEST_S),
            bytes_per_s=reader.number("bytes_per_s", 1),
            spread=reader.number("spread", 0, 1e6),
            misfit=reader.number("misfit", 0, 1e6),
            samples=tuple(_sample(item) for item in reader.objects("samples")),
        )


def _sample(reader: Reader) -> ExchangeSample:
    kind = reader.text("kind", KINDS)
    return ExchangeSample(
        kind=next(known for known in KINDS if known == kind),
        message_bytes=reader.whole("message_bytes", 1),
        median_s=reader.number("median_s", 1e-12, _LONGEST_S),
        p10_s=reader.number("p10_s", 0, _LONGEST_S),
        p90_s=reader.number("p90_s", 0, _LONGEST_S),
    )


def fit_link(samples: Sequence[ExchangeSample], *, ranks: int, backend: str, measured_at: str) -> LocalLink:
    """Fit ``latency + wire bytes / bandwidth`` to exchanges of several sizes.

    Errors count relative to the sample, so that small messages weigh as much as large ones. The law is that
    of ``core.analytic.collectives.fastest_s``, whose one step is the shortest way among few processes.

    Args:
        samples: of two sizes or more.
        ranks: processes that took part.
        backend: how they talked.
        measured_at: ISO time, UTC.

    >>> law = [ExchangeSample("all_reduce", n, 1e-4 + n / 1e9, 1e-4, 1e-3) for n in (1_000, 1_000_000)]
    >>> found = fit_link(law, ranks=2, backend="gloo", measured_at="2026-11-30T12:00:00+00:00")
    >>> round(found.latency_s * 1e6), round(found.bytes_per_s / 1e9, 3), round(found.misfit, 6)
    (100, 1.0, 0.0)
    """
    taken = np.array([sample.median_s for sample in samples])
    wire = np.array([_wire_bytes(sample, ranks) for sample in samples])
    latency_s, byte_s = _law(wire, taken)
    speed = LinkSpeed(1 / max(byte_s, 1 / _UNLIMITED), latency_s)
    said = np.array(
        [float(fastest_s(Collective(each.kind, ranks), each.message_bytes, speed)) for each in samples]
    )
    return LocalLink(
        measured_at=measured_at,
        backend=backend,
        ranks=ranks,
        latency_s=speed.latency_s,
        bytes_per_s=speed.bytes_per_s,
        spread=float(np.median([sample.spread for sample in samples])),
        misfit=float(np.median(np.abs(said / taken - 1))),
        samples=tuple(samples),
    )


def _wire_bytes(sample: ExchangeSample, ranks: int) -> float:
    collective = Collective(sample.kind, ranks)
    return float(min(collective.wire_bytes(sample.message_bytes, way) for way in ("ring", "one_shot")))


def _law(wire: NDArray[np.float64], taken: NDArray[np.float64]) -> tuple[float, float]:
    """Seconds of no bytes and of a byte; neither is below zero."""
    terms = np.stack([1 / taken, wire / taken], axis=1)
    wanted = np.ones(len(taken))
    latency_s, byte_s = (float(value) for value in np.linalg.lstsq(terms, wanted, rcond=None)[0])
    if latency_s < 0:
        return 0.0, float(terms[:, 1] @ wanted / (terms[:, 1] @ terms[:, 1]))
    if byte_s < 0:
        return float(terms[:, 0] @ wanted / (terms[:, 0] @ terms[:, 0])), 0.0
    return latency_s, byte_s
