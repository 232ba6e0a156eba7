"""What this computer reaches: the record of a calibration, and the machine that follows from it.

A calibration is a measurement of the engine's own operators at shapes of its own, never of the run
that is predicted with it. It belongs to one machine as it is now (processor, cores, torch, device),
so it carries their fingerprint, its time, and how much its samples scattered.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from core.analytic.machine import Machine
from core.catalog.accelerator import THIS_COMPUTER
from core.lab.checked_json import Reader, utc_time
from core.lab.local_link import LocalLink
from core.lab.measured_rate import KINDS, MeasuredRate
from core.lab.pace import Pace
from core.lab.reach import FORMER_REACH, Reach

SCHEMA: Final = "llm-inference-lab/calibration"
VERSION: Final = 3
_WHAT: Final = "A calibration"

Depth = Literal["quick", "full"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must be the same for a calibration to hold.

    Attributes:
        cpu, cores, device, device_name, torch_version: of the machine.
        engine: a digest of the engine's source, whose operators were timed, and of what timed them; empty in
            records of before.
    """

    cpu: str
    cores: int
    device: str
    device_name: str
    torch_version: str
    engine: str = ""

    @property
    def id(self) -> str:
        """A short digest of the machine, used in file names; a new engine takes the place of an old one."""
        text = json.dumps(asdict(replace(self, engine="")), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def difference(self, other: Fingerprint) -> str:
        """The first thing that differs from ``other``, as a clause; empty where nothing does."""
        for name, mine in asdict(self).items():
            theirs = asdict(other)[name]
            if mine != theirs:
                return f"its {name.replace('_', ' ')} is {theirs!r} and not {mine!r}"
        return ""


@dataclass(frozen=True, slots=True)
class SizedBandwidth:
    """Bandwidth over a working set of one size; the best of several passes, as a ceiling is."""

    working_set_bytes: int
    read_bytes_per_s: float
    copy_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """One calibration of one device.

    Attributes:
        fingerprint: of the machine. measured_at: ISO time, UTC. depth: quick or full.
        duration_s: what it took. threads: the computing threads it chose, used for runs since.
        capacity_bytes: memory a job may use.
        bandwidths: read and copy by working set, small to large.
        pace: what the short checks gave, the median beside all measurements; the same checks are made
            beside each run, so that the two can be compared.
        peak_flops_per_s: the best matrix product by compute format.
        rates: one for each kind and format. step_fixed_s: of a step besides its operators.
        reach: the largest that was timed; beyond it a prediction is less certain.
        noisy: why the numbers deserve less trust; empty on a quiet host.
        link: between processes of this machine; None where it was not measured, as by a quick calibration.
        remarks: sentences on what could not be measured.
    """

    fingerprint: Fingerprint
    measured_at: str
    depth: Depth
    duration_s: float
    threads: int
    capacity_bytes: float
    bandwidths: tuple[SizedBandwidth, ...]
    pace: Pace
    peak_flops_per_s: dict[str, float]
    rates: tuple[MeasuredRate, ...]
    step_fixed_s: float
    noisy: tuple[str, ...] = ()
    reach: Reach = FORMER_REACH
    link: LocalLink | None = None
    remarks: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Machine and time: what a record refers to."""
        return f"{self.fingerprint.id}-{self.measured_at}"

    @property
    def spread(self) -> float:
        """Relative half-width that a prediction inherits: the worst of the linears' spreads."""
        return max((r.spread for r in self.rates if r.kind == "linear"), default=0.0)

    @property
    def read_bytes_per_s(self) -> float:
        """The ceiling of every operator: reading a working set that no cache holds."""
        return self.bandwidths[-1].read_bytes_per_s

    def machine(self, weights: str = "") -> Machine:
        """The machine that the arithmetic uses; it does not know that it was measured.

        Args:
            weights: the format of the weights that will run; rates measured beside it come first.
        """
        own = [row for row in self.rates if row.operator and row.beside in {"", weights}]
        own.sort(key=lambda row: row.beside != "")  # what was measured beside these weights has the last word
        return Machine(
            id=THIS_COMPUTER,
            name=self.fingerprint.device_name or self.fingerprint.cpu,
            origin="measured",
            capacity_bytes=self.capacity_bytes,
            bandwidth_bytes_per_s=self.read_bytes_per_s,
            peak_flops_per_s=dict(self.peak_flops_per_s),
            rates={(row.kind, row.format): row.rate for row in self.rates if not row.operator},
            operator_rates={(row.operator, row.format): row.rate for row in own},
            step_fixed_s=self.step_fixed_s,
            measured_at=self.measured_at,
            notes=(*(f"The calibration is noisy: {reason}." for reason in self.noisy), *self.remarks),
            link=None if self.link is None else self.link.link(),
        )

    def with_link_of(self, before: Calibration | None) -> Calibration:
        """The same with the link that a full calibration found before, where this one looked for none."""
        if before is None or self.link is not None or self.remarks:
            return self
        return replace(self, link=before.link)

    def at_pace(self, now: Pace) -> Calibration:
        """The same machine where memory or cores are faster or slower than when it was calibrated.

        Bytes of weights and of the KV cache take as long as ``Pace.seconds_at`` says; fixed costs, small
        operators and the arithmetic of many rows follow the speed of work.

        Args:
            now: what checks let one expect of a run, followed as far as ``Pace.towards`` goes.
        """
        now = self.pace.towards(now)
        last = self.bandwidths[-1]
        faster = now.read_bytes_per_s / self.pace.read_bytes_per_s
        read = replace(last, read_bytes_per_s=last.read_bytes_per_s * faster)
        return replace(
            self,
            bandwidths=(*self.bandwidths[:-1], read),
            pace=now,
            rates=tuple(row.at_pace(self.pace, now) for row in self.rates),
            step_fixed_s=self.step_fixed_s * self.pace.slower_work(now),
        )

    def to_json(self) -> dict[str, Any]:
        """A plain object (lists, not tuples), with its schema and version."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return {"schema": SCHEMA, "version": VERSION, **plain}

    @classmethod
    def from_json(cls, data: object) -> Calibration:
        """Read a calibration back.

        Raises:
            RecordError: a value is missing, of another type, or out of its bounds.
        """
        reader = Reader(data, _WHAT)
        reader.text("schema", (SCHEMA,))
        reader.whole("version", VERSION, VERSION)
        calibration = cls(
            fingerprint=_fingerprint(reader.inner("fingerprint")),
            measured_at=utc_time(reader, "measured_at"),
            depth="quick" if reader.text("depth", ("quick", "full")) == "quick" else "full",
            duration_s=reader.number("duration_s", 0, 3600),
            threads=reader.whole("threads", 1, 4096),
            capacity_bytes=reader.number("capacity_bytes", 1),
            bandwidths=tuple(_bandwidth(item) for item in reader.objects("bandwidths")),
            pace=Pace.from_reader(reader.inner("pace")),
            peak_flops_per_s=reader.number_map("peak_flops_per_s", 1),
            rates=tuple(MeasuredRate.from_reader(item) for item in reader.objects("rates")),
            step_fixed_s=reader.number("step_fixed_s", 0, 10),
            noisy=reader.texts("noisy"),
            reach=Reach.from_reader(reader.inner("reach")) if "reach" in reader.data else FORMER_REACH,
            link=reader.optional("link", LocalLink.from_reader),
            remarks=reader.texts("remarks") if "remarks" in reader.data else (),
        )
        if not calibration.bandwidths:
            reader.refuse("bandwidths", "at least one working set")
        missing = set(KINDS) - {row.kind for row in calibration.rates if not row.operator}
        if missing:
            reader.refuse("rates", f"a rate for {', '.join(sorted(missing))}")
        return calibration


def _fingerprint(reader: Reader) -> Fingerprint:
    return Fingerprint(
        cpu=reader.text("cpu"),
        cores=reader.whole("cores", 1, 4096),
        device=reader.text("device", ("cpu", "cuda")),
        device_name=reader.text("device_name"),
        torch_version=reader.text("torch_version"),
        engine=reader.text("engine") if "engine" in reader.data else "",
    )


def _bandwidth(reader: Reader) -> SizedBandwidth:
    return SizedBandwidth(
        working_set_bytes=reader.whole("working_set_bytes", 1),
        read_bytes_per_s=reader.number("read_bytes_per_s", 1),
        copy_bytes_per_s=reader.number("copy_bytes_per_s", 1),
    )
