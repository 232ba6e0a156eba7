"""The parts of a run record: host, load, what was measured, and what the words mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.lab.checked_json import Reader
from core.lab.pace import Pace
from core.lab.rehearsal import AS_PREDICTED, Rehearsal

PHASES: Final = ("prefill", "decode")

#: What the words in a record mean.
DEFINITIONS: Final[dict[str, str]] = {
    "ttft_s": "From the request's arrival at the engine until its first token is on the host: prefill and "
    "sampling; the first token belongs to the prefill.",
    "tpot_s": "(last token - first token) / (tokens - 1).",
    "step": "Wall time of one forward pass and its sampling, until the token is on the host.",
    "repeats": "After the visible run: warm-up until three steps agree within 5 %, then at least 30 decode "
    "steps at the run's mean context, and 3 prefills of its prompt (without a cache, 3 of each).",
    "operators": "Seconds by operator, all its repeats in one pass together, in a separate pass that "
    "times each operator. Timing itself makes that pass slower, so a comparison scales its times to the "
    "plain pass.",
    "mbu": "(weights read + KV cache read and written) / (TPOT x read bandwidth measured beside the run).",
    "spread": "Median, 10th and 90th percentile.",
    "peak_memory_bytes": "The engine's own tensors at their fullest; resident_bytes is the whole process.",
}


@dataclass(frozen=True, slots=True)
class HostRecord:
    """The machine and the software of a run."""

    device: str
    device_name: str
    driver: str
    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python_version: str
    torch_version: str
    threads: int

    @classmethod
    def from_reader(cls, reader: Reader) -> HostRecord:
        """Read it back, or raise a RecordError."""
        return cls(
            device=reader.text("device", ("cpu", "cuda")),
            device_name=reader.text("device_name"),
            driver=reader.text("driver"),
            cpu=reader.text("cpu"),
            cores=reader.whole("cores", 1, 4096),
            memory_bytes=reader.whole("memory_bytes", 1),
            system=reader.text("system"),
            python_version=reader.text("python_version"),
            torch_version=reader.text("torch_version"),
            threads=reader.whole("threads", 1, 4096),
        )


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """Who else used the host.

    Attributes:
        others, steal: parts of all processor time. before, after: what the checks beside the run gave.
        followed: the pace that the prediction is made for; None in records from before it was kept.
        rehearsal: just before the run, held against the calibration at that pace; None where there was none.
    """

    others: float
    steal: float
    duration_s: float
    before: Pace
    after: Pace
    followed: Pace | None = None
    rehearsal: Rehearsal | None = None

    @classmethod
    def from_reader(cls, reader: Reader) -> LoadRecord:
        """Read it back, or raise a RecordError."""
        return cls(
            others=reader.number("others", 0, 1),
            steal=reader.number("steal", 0, 1),
            duration_s=reader.number("duration_s", 0, 1e6),
            before=Pace.from_reader(reader.inner("before")),
            after=Pace.from_reader(reader.inner("after")),
            followed=reader.optional("followed", Pace.from_reader),
            rehearsal=reader.optional("rehearsal", Rehearsal.from_reader),
        )

    @property
    def rehearsed(self) -> Rehearsal:
        """The rehearsal, or that nothing was known."""
        return self.rehearsal or AS_PREDICTED

    def predicted_at(self, calibrated: Pace) -> Pace:
        """The pace that the prediction is made for, as far as one is followed from a calibration's.

        Records of before tell none: a prediction stood about halfway to the check before the run.
        """
        if self.followed is not None:
            return calibrated.towards(self.followed)
        return calibrated.halfway(calibrated.towards(self.before))

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The ceiling that held during the run: the better of the two checks."""
        return max(self.before.read_bytes_per_s, self.after.read_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was timed; seconds.

    Attributes:
        ttft_s, tpot_s: of the visible run; ``tpot_s`` is None where there is one token only.
        prefill_repeats_s, decode_repeats_s: by the timing protocol, after the visible run.
        operators_s: phase -> operator -> seconds in each profiled pass.
        peak_memory_bytes: the engine's tensors. resident_bytes: of the whole process.
    """

    ttft_s: float
    tpot_s: float | None
    prefill_repeats_s: tuple[float, ...]
    decode_repeats_s: tuple[float, ...]
    operators_s: dict[str, dict[str, tuple[float, ...]]]
    peak_memory_bytes: int
    resident_bytes: int

    @classmethod
    def from_reader(cls, reader: Reader) -> Measured:
        """Read it back, or raise a RecordError."""
        operators = reader.inner("operators_s")
        for phase in operators:
            if phase not in PHASES:
                operators.refuse(phase, "only prefill and decode")
        phases = {phase: operators.inner(phase) for phase in operators}
        return cls(
            ttft_s=reader.number("ttft_s", 1e-9, 1e6),
            tpot_s=reader.optional_number("tpot_s", 1e-9, 1e6),
            prefill_repeats_s=reader.numbers("prefill_repeats_s", 1e-9, 1e6),
            decode_repeats_s=reader.numbers("decode_repeats_s", 1e-9, 1e6),
            operators_s={
                phase: {name: inner.numbers(name, 0, 1e6) for name in inner}
                for phase, inner in phases.items()
            },
            peak_memory_bytes=reader.whole("peak_memory_bytes"),
            resident_bytes=reader.whole("resident_bytes"),
        )
