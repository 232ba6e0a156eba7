"""The record of one run: everything that is needed to judge it, in one JSON file.

What was asked, what was predicted and with which calibration, what each step and each operator
took, on which machine, and who else was using it. Summaries are computed from the raw rows, so a
record that was changed by hand no longer adds up, and is refused with a sentence.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.analytic.step_record import StepRecord
from core.errors import RecordError, UserError
from core.lab.calibration import Calibration
from core.lab.checked_json import Reader, utc_time
from core.lab.predict import Prediction, mbu
from core.lab.record_checks import contradiction
from core.lab.record_file import RecordFile
from core.lab.record_parts import DEFINITIONS, HostRecord, LoadRecord, Measured
from core.lab.request import RunRequest
from core.lab.sealed_json import opened, sealed
from core.lab.step_json import step_from_json, step_to_json
from core.lab.timing import Spread, spread
from core.units import MB

SCHEMA: Final = "llm-inference-lab/run"
VERSION: Final = 2
MOST_BYTES: Final = MB
STOP_REASONS: Final = ("end", "length", "stopped")
_WHAT: Final = "A run record"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run.

    Attributes:
        created_at: ISO time, UTC. model_name: as a page shows it. seeded_weights: the weights are
            random, so the text means nothing. kernels: operator -> what computed it.
        text: what the model wrote. stop_reason: "end", "length" or "stopped".
        steps: one row a step of the visible run.
        noisy: why no verdict may be drawn; empty on a quiet host.
    """

    created_at: str
    host: HostRecord
    calibration: Calibration
    request: RunRequest
    model_name: str
    seeded_weights: bool
    kernels: dict[str, str]
    prediction: Prediction
    text: str
    stop_reason: str
    steps: tuple[StepRecord, ...]
    measured: Measured
    load: LoadRecord
    noisy: tuple[str, ...] = ()

    @property
    def prefill_steps(self) -> tuple[StepRecord, ...]:
        """The steps that read the prompt; the end of the last one gave the first token."""
        return self.steps[: len(self.prediction.prefill_step_s)]

    @property
    def later_steps(self) -> tuple[StepRecord, ...]:
        """The steps after them, each of which gave one token more."""
        return self.steps[len(self.prediction.prefill_step_s) :]

    @property
    def output_tokens(self) -> int:
        """Tokens written."""
        return len(self.later_steps) + 1

    @property
    def step_spread(self) -> Spread | None:
        """Of the visible later steps; None where there is none."""
        return self._spread([step.host_s for step in self.later_steps])

    @property
    def prefill_spread(self) -> Spread:
        """Of the repeated prefills, or the visible one where none was repeated."""
        return spread(self.measured.prefill_repeats_s or [self.measured.ttft_s])

    @property
    def decode_spread(self) -> Spread | None:
        """Of the repeated decode steps, or the visible ones where none was repeated."""
        return self._spread(list(self.measured.decode_repeats_s)) or self.step_spread

    @property
    def between_steps_s(self) -> float:
        """What the engine did between two later steps of the visible run: its plan, the text, the stream."""
        steps_s = [step.host_s for step in self.later_steps]
        if not steps_s or self.measured.tpot_s is None:
            return 0.0
        return max(self.measured.tpot_s - sum(steps_s) / len(steps_s), 0.0)

    @property
    def token_spread(self) -> Spread | None:
        """TPOT: of the repeated decode steps, each with what lies between two of them."""
        steps = self.decode_spread
        return None if steps is None else steps.later(self.between_steps_s)

    @property
    def mbu(self) -> float | None:
        """Measured memory bandwidth utilisation of the decode steps; None without decode steps."""
        rows = self.later_steps
        if not rows or self.decode_spread is None:
            return None
        moved = sum(row.weight_bytes + row.kv_read_bytes + row.kv_write_bytes for row in rows) / len(rows)
        return mbu(moved, self.decode_spread.median_s, self.load.bandwidth_bytes_per_s)

    @staticmethod
    def _spread(samples_s: list[float]) -> Spread | None:
        return spread(samples_s) if samples_s else None

    def summary(self) -> dict[str, float | None]:
        """The headline figures, for readers of the file; they follow from the rows."""
        decode = self.decode_spread
        return {
            "ttft_s": self.measured.ttft_s,
            "tpot_s": self.measured.tpot_s,
            "prefill_median_s": self.prefill_spread.median_s,
            "decode_median_s": decode.median_s if decode else None,
            "decode_p10_s": decode.p10_s if decode else None,
            "decode_p90_s": decode.p90_s if decode else None,
            "mbu": self.mbu,
            "output_tokens": float(self.output_tokens),
        }

    def to_json(self) -> dict[str, Any]:
        """A plain object with schema, definitions, summary and a checksum over all of it."""
        content = {
            "schema": SCHEMA,
            "version": VERSION,
            "created_at": self.created_at,
            "host": asdict(self.host),
            "calibration": self.calibration.to_json(),
            "request": self.request.to_json(),
            "model_name": self.model_name,
            "seeded_weights": self.seeded_weights,
            "kernels": self.kernels,
            "prediction": self.prediction.to_json(),
            "text": self.text,
            "stop_reason": self.stop_reason,
            "steps": [step_to_json(step) for step in self.steps],
            "measured": asdict(self.measured),
            "load": asdict(self.load),
            "noisy": list(self.noisy),
            "summary": self.summary(),
            "definitions": DEFINITIONS,
        }
        return sealed(content)

    @classmethod
    def from_json(cls, data: object) -> RunRecord:
        """Read a record back and check that it adds up.

        Raises:
            RecordError: a value is missing or out of bounds, or the record was changed.
        """
        reader = opened(data, _WHAT, SCHEMA, VERSION)
        record = _read(reader)
        _check_sums(record, reader)
        return record


#: Records as files.
FILE: Final = RecordFile(_WHAT, RunRecord.from_json, MOST_BYTES, "Run fewer tokens.")
dumps, loads, save, load = FILE.dumps, FILE.loads, FILE.save, FILE.load


def _read(reader: Reader) -> RunRecord:
    kernels = reader.inner("kernels")
    return RunRecord(
        created_at=utc_time(reader, "created_at"),
        host=HostRecord.from_reader(reader.inner("host")),
        calibration=Calibration.from_json(reader.inner("calibration").data),
        request=_request(reader),
        model_name=reader.text("model_name"),
        seeded_weights=reader.flag("seeded_weights"),
        kernels={name: kernels.text(name) for name in kernels},
        prediction=Prediction.from_reader(reader.inner("prediction")),
        text=reader.text("text"),
        stop_reason=reader.text("stop_reason", STOP_REASONS),
        steps=_steps(reader),
        measured=Measured.from_reader(reader.inner("measured")),
        load=LoadRecord.from_reader(reader.inner("load")),
        noisy=reader.texts("noisy"),
    )


def _request(reader: Reader) -> RunRequest:
    try:
        return RunRequest.from_json(reader.inner("request").data)
    except UserError as mistake:
        raise RecordError(f"A run record must hold a request that could be made. {mistake}") from mistake


def _steps(reader: Reader) -> tuple[StepRecord, ...]:
    try:
        return tuple(step_from_json(item.data) for item in reader.objects("steps"))
    except ValueError as error:
        raise RecordError(
            f"A run record must hold whole steps, but {error}. Load the file that was saved."
        ) from error


def _check_sums(record: RunRecord, reader: Reader) -> None:
    """Check what a checksum cannot: that the rows tell one story, and the summary is theirs."""
    problem = contradiction(record)
    stored = reader.inner("summary")
    for name, value in record.summary().items():
        kept = stored.optional_number(name)
        if (kept is None) != (value is None) or not _close(kept or 0.0, value or 0.0):
            problem = problem or f"its {name} does not follow from its rows"
    if problem:
        raise RecordError(
            f"A run record's numbers must add up, but {problem}. It was changed: load the file that was "
            "saved."
        )


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
