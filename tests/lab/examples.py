"""Synthetic calibrations and records that hold together, for tests to bend."""

from dataclasses import replace

from core.analytic.machine import Rate
from core.analytic.step_record import StepRecord
from core.analytic.table import Kind
from core.catalog.models import model
from core.lab.calibration import Calibration, Fingerprint, SizedBandwidth
from core.lab.measured_rate import MeasuredRate
from core.lab.pace import Pace
from core.lab.predict import predict
from core.lab.record import RunRecord
from core.lab.record_parts import HostRecord, LoadRecord, Measured
from core.lab.request import RunRequest
from core.units import GB, MB

CALL_S = 2e-6
FINGERPRINT = Fingerprint("A processor", 2, "cpu", "", "2.13.0")
READ_BYTES_PER_S = 30 * GB
PROMPT_TOKENS = 12


def measured_rate(kind: Kind, format: str, fixed_s: float = 5e-6) -> MeasuredRate:
    rate = Rate(fixed_s, 20e9, (1.0, 16.0, 256.0), (20e9, 60e9, 100e9))
    return MeasuredRate(kind, format, rate, 0.03)


def calibration(bytes_per_s: float = READ_BYTES_PER_S) -> Calibration:
    formats = ("fp32", "bf16", "int8", "int8-dynamic", "int4")
    linears = [measured_rate("linear", name) for name in formats]
    others: tuple[Kind, ...] = ("lookup", "norm", "rope", "kv_write", "attention", "elementwise", "sample")
    return Calibration(
        fingerprint=FINGERPRINT,
        measured_at="2026-11-29T12:00:00+00:00",
        depth="quick",
        duration_s=9.5,
        threads=2,
        capacity_bytes=16.0 * GB,
        bandwidths=(
            SizedBandwidth(4 * MB, 90e9, 50e9),
            SizedBandwidth(400 * MB, bytes_per_s, bytes_per_s / 2),
        ),
        pace=Pace(bytes_per_s, CALL_S),
        peak_flops_per_s={"fp32": 100e9, "bf16": 200e9},
        rates=(*linears, *(measured_rate(kind, "*") for kind in others)),
        step_fixed_s=1e-4,
    )


def request(**changes: object) -> RunRequest:
    return replace(RunRequest(prompt="Why?", max_tokens=8), **changes)  # type: ignore[arg-type]


def record(slowness: float = 1.0, **changes: object) -> RunRecord:
    """A run whose every part took ``slowness`` times what was predicted."""
    asked, machine = request(), calibration()
    prediction = predict(asked, PROMPT_TOKENS, model(asked.model), machine.machine(asked.weights))
    seconds = [predicted * slowness for predicted in prediction.step_s]
    steps = tuple(step(index, PROMPT_TOKENS + index, value) for index, value in enumerate(seconds))
    phases = {"prefill": prediction.prefill, "decode": prediction.decode}
    measured = Measured(
        ttft_s=seconds[0],
        tpot_s=sum(seconds[1:]) / len(seconds[1:]),
        prefill_repeats_s=(seconds[0], seconds[0] * 0.99, seconds[0] * 1.01),
        decode_repeats_s=tuple(seconds[4] * (0.98 + 0.02 * (index % 3)) for index in range(30)),
        operators_s={
            phase: {name: (value * slowness,) for name, value in part.operators_s.items()}
            for phase, part in phases.items()
            if part is not None
        },
        peak_memory_bytes=100_000_000,
        resident_bytes=500_000_000,
    )
    whole = RunRecord(
        created_at="2026-11-29T12:01:00+00:00",
        host=HostRecord("cpu", "", "", "A processor", 2, 24 * GB, "Linux", "3.11.7", "2.13.0", 2),
        calibration=machine,
        request=asked,
        model_name="SmolLM2-135M",
        seeded_weights=False,
        kernels={"qkv": "packed int4"},
        prediction=prediction,
        text="Because of the air.",
        stop_reason="length",
        steps=steps,
        measured=measured,
        load=LoadRecord(
            0.02, 0.0, 1.5, Pace(READ_BYTES_PER_S * 0.98, CALL_S), Pace(READ_BYTES_PER_S * 0.97, CALL_S)
        ),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def step(index: int, context: int, seconds: float) -> StepRecord:
    return StepRecord(
        index=index,
        kind="decode" if index else "prefill",
        num_sequences=1,
        new_tokens=1 if index else context,
        context_tokens=context,
        weight_bytes=90_000_000,
        kv_read_bytes=23_040 * context,
        kv_write_bytes=23_040,
        pages_used=1,
        pages_free=0,
        device_s=seconds,
        host_s=seconds,
    )
